// The rows of the timeline: one for each start of a program, with the phases that led to it and how it ended.

import type { Phase, Timeline } from "../api";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { phaseName } from "./phaseNames";

export const PHASES: Phase[] = ["asked", "allocated", "launched", "localising", "joined", "running"];

const PHASE_COLOURS: Record<Phase, string> = {
  asked: "#c9ced4",
  allocated: "#d8b25c",
  launched: "#e08a3c",
  localising: "#8f6fd1",
  joined: "#49a5b8",
  running: "#3b82d0",
};

export function phaseColour(phase: Phase): string {
  return PHASE_COLOURS[phase] ?? "#8c959f";
}

type TimelineEntry = Timeline["tasks"][number];
type Failure = Timeline["first_failure"];

export interface TimelineRow extends TimelineEntry {
  /** The task, and the number of the start where there are several. */
  name: string;
  /** The program was started; else there is nothing that it printed. */
  started: boolean;
  /** Unix seconds, 0 without any phase. */
  begin: number;
  /** What people read about a failure that decided the job; else empty. */
  failure: string;
}

/** Makes the rows in the order of the answer, of one role or of all (""). */
export function timelineRows(timeline: Timeline, role: string): TimelineRow[] {
  const starts = new Map<string, number>();
  for (const { task } of timeline.tasks) starts.set(task, (starts.get(task) ?? 0) + 1);
  return timeline.tasks
    .filter(({ task }) => !role || task.startsWith(`${role}:`))
    .map((entry) => ({
      ...entry,
      name: (starts.get(entry.task) ?? 0) > 1 ? `${entry.task} #${entry.try_number}` : entry.task,
      started: entry.spans.some(({ phase }) => phase === "running"),
      begin: entry.spans[0]?.start ?? 0,
      failure: isOf(timeline.first_failure, entry)
        ? t("first failure")
        : isOf(timeline.last_failure, entry)
          ? t("last failure")
          : "",
    }));
}

function isOf(failure: Failure, entry: TimelineEntry): boolean {
  return failure?.task === entry.task && failure.try_number === entry.try_number;
}

/** Says in words what a row's bar shows. */
export function describeRow(row: TimelineRow, now: number): string {
  const phases = row.spans.map(
    ({ phase, start, end }) => `${phaseName(phase)} ${formatDuration((end || now) - start)}`,
  );
  const last = row.spans.at(-1);
  const times = last ? `${formatTime(row.begin)} – ${last.end ? formatTime(last.end) : "…"}` : "";
  return [row.name, phases.join(", "), times, row.exit].filter(Boolean).join("\n");
}

export interface Mark {
  seconds: number;
  kind: "failure" | "event";
}

const MAX_EVENTS = 20;

/** Returns the moments that a line crosses all rows at: the first failure and the last, restarts, snapshots, takeovers. */
export function timelineMarks({ first_failure, last_failure, marks }: Timeline): Mark[] {
  const failures = [first_failure, last_failure].flatMap((failure) =>
    failure ? [{ seconds: failure.time, kind: "failure" as const }] : [],
  );
  const events = marks
    .filter(({ kind }) => kind === "restarted" || kind === "takeover" || kind === "save")
    .slice(-MAX_EVENTS)
    .map(({ time }) => ({ seconds: time, kind: "event" as const }));
  return [...events, ...failures];
}
