// Metrics that programs report with howdah.here.metric. Those without steps are drawn over time.

import { useMemo } from "react";
import type { Job, QueryParams, SeriesResponse, SeriesPoint } from "../api";
import { type ChartLine, smooth } from "../charts/chartLines";
import type { AxisKind } from "../charts/plotOptions";
import { t } from "../language";
import { usePolling } from "../usePolling";
import type { ChartSettings } from "./chartSettings";
import { MANY_LINES, toBand } from "./rankBand";

/** Every point of the thousands that a metric keeps at first. */
const MAX_POINTS = 4000;
const MIN_POINTS = 300;
/** The points of one metric in all tasks together. */
const MAX_POINTS_TOGETHER = 64_000;

/** One metric of one task. */
export interface MetricSeries {
  job: string;
  task: string;
  name: string;
  points: SeriesPoint[];
  /** The training step of each point; null where the program named none. */
  steps: (number | null)[];
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
  dash: number;
  job: string;
}

/** Fetches the metrics of a job every `seconds` (0: once). */
export function useProgramMetrics(job: Job, seconds: number): ProgramMetrics & { error: string } {
  const polled = usePolling("jobs/{job}/series", { job: job.id }, programMetricsQuery(job), seconds);
  const response = polled.data;
  const metrics = useMemo(() => toProgramMetrics(job.id, response), [job.id, response]);
  return { ...metrics, error: polled.error?.message ?? "" };
}

/** Requests all metrics of all tasks at once (a job has few hundred of them): an address has no room for many names, and a name may contain the separator. */
export function programMetricsQuery(job: Job): QueryParams<"jobs/{job}/series"> {
  const tasks = job.roles.reduce((sum, { replicas }) => sum + replicas, 0);
  const share = Math.floor(MAX_POINTS_TOGETHER / Math.max(1, tasks));
  return { kind: "told", task: "*", points: Math.max(MIN_POINTS, Math.min(MAX_POINTS, share)) };
}

export function toProgramMetrics(job: string, response: SeriesResponse | undefined): ProgramMetrics {
  const names = (response?.names ?? []).filter(({ kind }) => kind === "told").map(({ name }) => name);
  return { names, series: (response?.series ?? []).map(({ task, name, points, steps }) => ({ job, task, name, points, steps })) };
}

/** Lists the tasks of the series, with colours from `first` on. With `jobs`, the names and colours of several jobs by
 * their ids, labels name the job, too, and a task has its job's colour. */
export function listMetricTasks(
  series: MetricSeries[],
  first: number,
  jobs?: Map<string, { name: string; colour?: number }>,
): MetricTask[] {
  const tasks = new Map<string, MetricTask>();
  const counts = new Map<string, number>();
  for (const line of series) {
    const id = metricTaskId(line);
    if (tasks.has(id)) continue;
    const job = jobs?.get(line.job);
    const index = counts.get(line.job) ?? 0;
    counts.set(line.job, index + 1);
    tasks.set(id, {
      id,
      label: job ? `${job.name} · ${line.task}` : line.task,
      colour: job?.colour ?? first + tasks.size,
      dash: job?.colour === undefined ? 0 : index,
      job: line.job,
    });
  }
  return [...tasks.values()];
}

/** Returns the id of a task. Links hold ids of hidden tasks, so `told`, the API's word for reported metrics, stays in it. */
function metricTaskId({ job, task }: MetricSeries): string {
  return `${job} told ${task}`;
}

/** Returns the axis for a metric: where points have no steps, time takes their place. */
export function metricAxis(series: MetricSeries[], tag: string, { axis }: ChartSettings): AxisKind {
  const hasSteps = series.every(({ name, steps }) => name !== tag || steps.every((step) => step !== null));
  return axis === "step" && !hasSteps ? "time" : axis;
}

/** Makes the lines of one metric, for these tasks. */
export function metricLines(
  series: MetricSeries[],
  tag: string,
  tasks: MetricTask[],
  settings: ChartSettings,
): ChartLine[] {
  const shownTasks = new Map(tasks.map((task) => [task.id, task]));
  const axis = metricAxis(series, tag, settings);
  return series.flatMap((line) => {
    const { name, points, steps } = line;
    const metricTask = shownTasks.get(metricTaskId(line));
    if (name !== tag || !metricTask || !points.length) return [];
    const startedAt = axis === "relative" ? (points[0]?.[0] ?? 0) : 0;
    const shown = axis === "step" ? latestOfSteps(steps) : [...points.keys()];
    const x = shown.map((index) => (axis === "step" ? (steps[index] ?? 0) : (points[index]?.[0] ?? 0) - startedAt));
    const y = shown.map((index) => points[index]?.[2] ?? null);
    const { id, label, colour, dash } = metricTask;
    const base = { id, name: label, colour, dash, pinned: settings.pinned.includes(id), x };
    if (!settings.smoothing) return [{ ...base, y }];
    return [
      { ...base, y, faint: true },
      { ...base, y: smooth(y, settings.smoothing), smoothed: true },
    ];
  });
}

/** Makes the lines of one metric; those of a job with many tasks as a band, or as the reader wants. A band is named
 * after its job where there are several. */
export function bandedMetricLines(
  series: MetricSeries[],
  tag: string,
  tasks: MetricTask[],
  settings: ChartSettings,
  jobNames: Map<string, string>,
): ChartLine[] {
  const jobs = [...new Set(tasks.map(({ job }) => job))];
  return jobs.flatMap((job) => {
    const members = tasks.filter((task) => task.job === job);
    const lines = metricLines(series, tag, members, settings);
    const inBand = settings.band ?? lines.filter(({ faint }) => !faint).length >= MANY_LINES;
    if (!inBand) return lines;
    const named = jobs.length > 1 ? ` · ${jobNames.get(job) ?? job}` : "";
    return toBand(lines, (count) => t("Median of {count} tasks", { count }) + named);
  });
}

/** Returns the index of the latest point of each step, in the order of steps: a program that goes on from a checkpoint
 * reports some steps again. */
function latestOfSteps(steps: (number | null)[]): number[] {
  const latest = new Map(steps.map((step, index) => [step ?? 0, index]));
  return [...latest].sort(([first], [second]) => first - second).map(([, index]) => index);
}
