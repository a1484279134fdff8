// Curves that the programs tell of themselves by howdah.here.metric: over time, for their points come without steps.

import { useMemo } from "react";
import type { Job, QueryParams, SeriesResponse, SeriesPoint } from "../api";
import { type ChartLine, smooth } from "../charts/chartLines";
import type { AxisKind } from "../charts/LineChart";
import { sampleTasks } from "../job/taskNames";
import { usePolling } from "../usePolling";
import type { ChartSettings } from "./chartSettings";

const MAX_POINTS = 1000;

/** What a task tells under one name. */
export interface MetricSeries {
  job: string;
  task: string;
  name: string;
  points: SeriesPoint[];
}

export interface ProgramMetrics {
  /** All names, also those of tasks that were not asked for. */
  names: string[];
  series: MetricSeries[];
}

/** A task that tells something, as it is called and coloured here. */
export interface MetricTask {
  /** No run of event files has this one, though it may be called like the task. */
  id: string;
  label: string;
  colour: number;
}

/** What there is so far, asked again every `seconds` (0: once). */
export function useProgramMetrics(job: Job, seconds: number): ProgramMetrics & { error: string } {
  const polled = usePolling("jobs/{job}/series", { job: job.id }, programMetricsQuery(job), seconds);
  const response = polled.data;
  const metrics = useMemo(() => toProgramMetrics(job.id, response), [job.id, response]);
  return { ...metrics, error: polled.error?.message ?? "" };
}

/** All names at once: an address has no room for many, and a name may hold what would part two. */
export function programMetricsQuery(job: Job): QueryParams<"jobs/{job}/series"> {
  return { kind: "told", task: sampleTasks(job).join(","), points: MAX_POINTS };
}

export function toProgramMetrics(job: string, response: SeriesResponse | undefined): ProgramMetrics {
  const names = (response?.names ?? []).filter(({ kind }) => kind === "told").map(({ name }) => name);
  return { names, series: (response?.series ?? []).map(({ task, name, points }) => ({ job, task, name, points })) };
}

/** Whose lines these are, coloured from `first` on; `compared`: called by their jobs, too. */
export function listMetricTasks(series: MetricSeries[], first: number, compared: boolean): MetricTask[] {
  const found = new Map<string, MetricTask>();
  for (const line of series) {
    const label = compared ? `${line.job} ${line.task}` : line.task;
    const colour = first + found.size;
    if (!found.has(metricTaskId(line))) found.set(metricTaskId(line), { id: metricTaskId(line), label, colour });
  }
  return [...found.values()];
}

function metricTaskId({ job, task }: MetricSeries): string {
  return `${job} told ${task}`;
}

/** Steps are not known, so time stands for them. */
export function metricAxis({ axis }: ChartSettings): AxisKind {
  return axis === "step" ? "time" : axis;
}

/** The lines of one name, of these tellers. */
export function metricLines(series: MetricSeries[], tag: string, tasks: MetricTask[], settings: ChartSettings): ChartLine[] {
  const shown = new Map(tasks.map((metricTask) => [metricTask.id, metricTask]));
  return series.flatMap((line) => {
    const { name, points } = line;
    const teller = shown.get(metricTaskId(line));
    if (name !== tag || !teller || !points.length) return [];
    const startedAt = settings.axis === "relative" ? (points[0]?.[0] ?? 0) : 0;
    const x = points.map(([time]) => time - startedAt);
    const y = points.map(([, , mean]) => mean);
    const base = { name: teller.label, colour: teller.colour, x };
    if (!settings.smoothing) return [{ ...base, y }];
    return [
      { ...base, y, faint: true },
      { ...base, y: smooth(y, settings.smoothing) },
    ];
  });
}
