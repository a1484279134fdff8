// Metrics that programs report with howdah.here.metric. They are drawn over time, because they come without steps.

import { useMemo } from "react";
import type { Job, QueryParams, SeriesResponse, SeriesPoint } from "../api";
import { type ChartLine, smooth } from "../charts/chartLines";
import type { AxisKind } from "../charts/LineChart";
import { sampleTasks } from "../job/taskNames";
import { usePolling } from "../usePolling";
import type { ChartSettings } from "./chartSettings";

const MAX_POINTS = 1000;

/** One metric of one task. */
export interface MetricSeries {
  job: string;
  task: string;
  name: string;
  points: SeriesPoint[];
}

export interface ProgramMetrics {
  /** The names of all metrics, also of tasks that were not requested. */
  names: string[];
  series: MetricSeries[];
}

/** A task whose program reports metrics, with its label and colour in the charts. */
export interface MetricTask {
  /** Differs from the ids of all runs, although a run may have the task's name. */
  id: string;
  label: string;
  colour: number;
}

/** Fetches the metrics of a job every `seconds` (0: once). */
export function useProgramMetrics(job: Job, seconds: number): ProgramMetrics & { error: string } {
  const polled = usePolling("jobs/{job}/series", { job: job.id }, programMetricsQuery(job), seconds);
  const response = polled.data;
  const metrics = useMemo(() => toProgramMetrics(job.id, response), [job.id, response]);
  return { ...metrics, error: polled.error?.message ?? "" };
}

/** Requests all metrics at once: an address has no room for many names, and a name may contain the separator. */
export function programMetricsQuery(job: Job): QueryParams<"jobs/{job}/series"> {
  return { kind: "told", task: sampleTasks(job).join(","), points: MAX_POINTS };
}

export function toProgramMetrics(job: string, response: SeriesResponse | undefined): ProgramMetrics {
  const names = (response?.names ?? []).filter(({ kind }) => kind === "told").map(({ name }) => name);
  return { names, series: (response?.series ?? []).map(({ task, name, points }) => ({ job, task, name, points })) };
}

/** Lists the tasks of the series, with colours from `first` on. `compared`: labels name the job, too. */
export function listMetricTasks(series: MetricSeries[], first: number, compared: boolean): MetricTask[] {
  const tasks = new Map<string, MetricTask>();
  for (const line of series) {
    const label = compared ? `${line.job} ${line.task}` : line.task;
    const colour = first + tasks.size;
    if (!tasks.has(metricTaskId(line))) tasks.set(metricTaskId(line), { id: metricTaskId(line), label, colour });
  }
  return [...tasks.values()];
}

/** Returns the id of a task. Links hold ids of hidden tasks, so `told`, the API's word for reported metrics, stays in it. */
function metricTaskId({ job, task }: MetricSeries): string {
  return `${job} told ${task}`;
}

/** Returns the axis for metrics: steps are unknown, so time takes their place. */
export function metricAxis({ axis }: ChartSettings): AxisKind {
  return axis === "step" ? "time" : axis;
}

/** Makes the lines of one metric, for these tasks. */
export function metricLines(
  series: MetricSeries[],
  tag: string,
  tasks: MetricTask[],
  settings: ChartSettings,
): ChartLine[] {
  const shownTasks = new Map(tasks.map((task) => [task.id, task]));
  return series.flatMap((line) => {
    const { name, points } = line;
    const metricTask = shownTasks.get(metricTaskId(line));
    if (name !== tag || !metricTask || !points.length) return [];
    const startedAt = settings.axis === "relative" ? (points[0]?.[0] ?? 0) : 0;
    const x = points.map(([time]) => time - startedAt);
    const y = points.map(([, , mean]) => mean);
    const base = { name: metricTask.label, colour: metricTask.colour, x };
    if (!settings.smoothing) return [{ ...base, y }];
    return [
      { ...base, y, faint: true },
      { ...base, y: smooth(y, settings.smoothing) },
    ];
  });
}
