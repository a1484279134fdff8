// The rows of a comparison of jobs, part by part. What differs comes first in its part.

import type { ApiResponse, JobRow, SpecDifference } from "../api";
import { formatAmount, formatDateTime, formatDuration, formatNumber, formatPercent } from "../format";
import { t } from "../language";
import { causeName } from "./causeNames";
import { specText } from "./specText";

const NO_VALUE = "–";

export interface CompareRow {
  label: string;
  /** The value of each job, as text. */
  values: string[];
  differs: boolean;
}

interface Part {
  title: string;
  rows: CompareRow[];
}

export function comparisonParts({ jobs, spec, captured }: ApiResponse<"compare">): Part[] {
  const parts = [
    { title: t("Outcome"), rows: outcomeRows(jobs) },
    { title: t("Metrics"), rows: namedRows(jobs, ({ metrics }) => metrics, formatMetric) },
    { title: t("Hyperparameters"), rows: namedRows(jobs, ({ params }) => params, String) },
    { title: t("Spec"), rows: spec.map(specRow) },
    { title: t("Environment and code"), rows: captured.map(specRow) },
  ];
  return parts.map(({ title, rows }) => ({
    title,
    rows: [...rows.filter((row) => row.differs), ...rows.filter((row) => !row.differs)],
  }));
}

function outcomeRows(jobs: JobRow[]): CompareRow[] {
  const fields: [label: string, value: (job: JobRow) => string][] = [
    [t("State"), (job) => t(job.state)],
    [t("Diagnostics"), (job) => job.diagnostics || causeName(job.cause)],
    [t("Progress"), (job) => formatPercent(job.progress)],
    [t("Started"), (job) => formatDateTime(job.started)],
    [t("Duration"), (job) => formatDuration(job.duration_s)],
    [t("GPU hours"), (job) => formatAmount(job.gpu_hours)],
    [t("Wasted GPU hours"), (job) => formatAmount(job.wasted_gpu_hours)],
    [t("CPU hours"), (job) => formatAmount(job.cpu_hours)],
    [t("Memory (GiB hours)"), (job) => formatAmount(job.memory_gib_hours)],
    [t("Tasks"), (job) => `${job.tasks}`],
    [t("GPUs"), (job) => `${job.gpus}`],
    [t("User"), (job) => job.user],
    [t("Queue"), (job) => job.queue],
    [t("Engine"), (job) => job.engine],
    [t("Framework"), (job) => job.framework],
    [t("Tags"), (job) => job.tags.join(", ")],
  ];
  return fields.map(([label, value]) => toRow(label, jobs.map(value)));
}

function namedRows<T>(jobs: JobRow[], of: (job: JobRow) => Record<string, T>, format: (value: T) => string): CompareRow[] {
  const names = [...new Set(jobs.flatMap((job) => Object.keys(of(job))))].sort();
  return names.map((name) =>
    toRow(
      name,
      jobs.map((job) => {
        const value = of(job)[name];
        return value === undefined ? "" : format(value);
      }),
    ),
  );
}

function formatMetric({ last, min, max }: JobRow["metrics"][string]): string {
  const [shown, least, most] = [last, min, max].map((value) => formatNumber(value, 4));
  return t("{last} (min {min}, max {max})", { last: shown ?? "", min: least ?? "", max: most ?? "" });
}

function specRow({ path, values }: SpecDifference): CompareRow {
  return toRow(
    path,
    values.map((value) => (value === null ? "" : specText(path, value))),
  );
}

function toRow(label: string, values: string[]): CompareRow {
  return { label, values: values.map((value) => value || NO_VALUE), differs: new Set(values).size > 1 };
}
