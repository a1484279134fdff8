// What the server answers (docs/api.md): times are epoch seconds, sizes are in the unit of their name.

import type { Sentence } from "./retold";

export type State = "PENDING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED";

export interface Server {
  kind: "master" | "history";
  version: string;
  job: string | null;
  now: number;
  may_act: boolean;
  engine: string;
}

export interface JobRow {
  id: string;
  name: string;
  user: string;
  queue: string;
  engine: string;
  framework: string;
  state: State;
  started: number;
  finished: number;
  duration_s: number;
  tasks: number;
  gpus: number;
  gpu_hours: number;
  wasted_gpu_hours: number;
  cause: string;
  progress: number | null;
  diagnostics: Sentence;
  url: string;
}

export interface Jobs {
  jobs: JobRow[];
  next: string | null;
  total: number;
  /** Sentences for people. */
  problems?: Sentence[];
}

export interface Failure {
  task: string;
  node: string;
  exit: Sentence;
  lines: string[];
}

export interface Save {
  number: number;
  output: number;
  uri: string;
  tasks: number;
  by: string;
  state: State;
  done: number;
  files: number;
  bytes: number;
  total: number;
  started: number;
  finished: number;
  reason: Sentence;
  skipped: string[];
  removed: boolean;
}

export interface Role {
  name: string;
  replicas: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  pending: number;
  resources: Record<string, number | string | boolean | null>;
}

export interface Captured {
  git_commit?: string;
  git_dirty?: boolean;
  packages?: Record<string, string>;
  command?: string[];
  client?: unknown;
  submitted_at?: number;
  variables?: Record<string, string>;
}

export interface Job {
  version: number;
  id: string;
  name: string;
  user: string;
  queue: string;
  engine: string;
  framework: string;
  state: State;
  epoch: number;
  host: string;
  python: string;
  progress: number | null;
  eta_s: number | null;
  asked: number;
  started: number;
  running: number;
  finished: number;
  diagnostics: Sentence;
  failure: Failure | null;
  resumed: string;
  outputs: string[];
  links: { name: string; url: string; kind: "user" | "tensorboard" | "notebook" }[];
  notes: { time: number; text: Sentence }[];
  saves: Save[];
  /** Empty where nothing can be done. */
  can: { save?: boolean; stacks?: boolean; tensorboard?: boolean };
  submitted: { yaml: string; file: string } | null;
  spec: unknown;
  captured: Captured | null;
  roles: Role[];
  /** `template` is the key of the sentence in other languages. */
  hints: { task: string; role: string; text: string; template: string; values: Record<string, string | number> }[];
}

export interface Attempt {
  attempt: number;
  container: string;
  node: string;
  started: number;
  finished: number;
  exit: Sentence;
}

export interface Task {
  task: string;
  role: string;
  /** Null for a spare. */
  rank: number | null;
  state: State;
  phase: string;
  attempt: number;
  container: string;
  node: string;
  host: string;
  pid: number;
  gpus: (string | number)[];
  ports: Record<string, number>;
  started: number;
  finished: number;
  progress: number | null;
  memory_mib: number;
  peak_mib: number;
  cpu: number;
  gpu: number | null;
  gpu_memory_mib: number | null;
  read_mib: number | null;
  written_mib: number | null;
  received_mib: number | null;
  sent_mib: number | null;
  data_bytes: number;
  data_total_bytes: number;
  metrics: Record<string, number | null>;
  exit: Sentence;
  log_url: string;
  straggler: Sentence;
  notice: Sentence;
  attempts: Attempt[];
}

export interface Tasks {
  version: number;
  tasks: Task[];
}

export type Phase = "asked" | "allocated" | "launched" | "localising" | "joined" | "running";

export interface Timeline {
  version: number;
  from: number;
  to: number;
  job: { phase: string; start: number; end: number }[];
  tasks: {
    task: string;
    attempt: number;
    spans: { phase: Phase; start: number; end: number }[];
    exit: Sentence;
    state: State;
  }[];
  marks: { time: number; kind: string; task: string; text: Sentence }[];
  first_failure: { task: string; time: number; text: Sentence } | null;
}

/** [time, min, mean, max]; a missing value is a gap. */
export type UsagePoint = [number, number | null, number | null, number | null];

export interface Usage {
  version: number;
  names: { name: string; unit: string; kind: "sampled" | "told" }[];
  series?: { task: string; name: string; unit: string; points: UsagePoint[] }[];
}

export interface Events {
  next: number;
  events: Record<string, unknown>[];
}

export interface LogPart {
  offset: number;
  size: number;
  next: number;
  text: string;
  complete: boolean;
  attempts: number[];
}

export interface Hit {
  task: string;
  attempt: number;
  stream: string;
  offset: number;
  line: number;
  text: string;
  level: string;
  time: number | null;
}

export interface Search {
  hits: Hit[];
  scanned_bytes: number;
  seconds: number;
  complete: boolean;
  /** Sentences: who could not be searched. */
  problems?: Sentence[];
}

export interface Run {
  run: string;
  tags: { scalar?: string[]; histogram?: string[]; image?: string[]; text?: string[]; hparams?: boolean };
  from: number;
  to: number;
  steps: number;
}

export interface Runs {
  runs: Run[];
  complete: boolean;
  errors: { file: string; text: Sentence }[];
}

/** [step, time, min, value, max]; a missing value is no number. */
export type ScalarPoint = [number, number, number | null, number | null, number | null];

export interface Scalars {
  series: { run: string; tag: string; points: ScalarPoint[]; last: unknown; nan: number }[];
}

export interface Histograms {
  run: string;
  tag: string;
  steps: { step: number; time: number; buckets: [number, number, number][] }[];
}

export interface Distributions {
  run: string;
  tag: string;
  percentiles: number[];
  steps: { step: number; time: number; values: number[] }[];
}

export interface Images {
  images: { step: number; time: number; width: number; height: number; index?: number }[];
}

export interface Texts {
  texts: { step: number; time: number; text: string }[];
}

export interface HParams {
  runs: { run: string; values: Record<string, unknown>; metrics: Record<string, number | null> }[];
}

export interface Checkpoint {
  uri: string;
  step: number | null;
  format: string;
  bytes: number;
  files: number;
  /** Null: not looked into. */
  valid: boolean | null;
  reason: Sentence;
}

export interface Tensor {
  name: string;
  dtype: string;
  shape: number[];
  count: number;
  bytes: number;
}

export interface TensorStatistics {
  min: number | null;
  max: number | null;
  mean: number | null;
  std: number | null;
  zeros: number;
  nan: number;
  histogram: [number, number, number][];
}

export interface Difference {
  path: string;
  a: unknown;
  b: unknown;
}

export interface Comparison {
  spec: Difference[];
  captured?: Difference[];
}

export interface Users {
  users: {
    user: string;
    jobs: number;
    gpu_hours: number;
    wasted_gpu_hours: number;
    by_cause: Record<string, number>;
  }[];
}

export interface Trace {
  job: string;
  task: string;
  attempt: number;
  url: string;
}
