// Up to four metrics as small charts with their last values: those that programs report, then scalars of event files.

import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { EventRun, Job, ScalarSeries, Task } from "../api";
import type { ChartLine } from "../charts/chartLines";
import { LineChart } from "../charts/LineChart";
import type { AxisKind } from "../charts/plotOptions";
import { formatNumber } from "../format";
import { t } from "../language";
import { href } from "../router";
import { lineColour, useDarkMode } from "../theme";
import { readChartSettings } from "../trainingCurves/chartSettings";
import { listMetricTasks, metricAxis, metricLines, toProgramMetrics } from "../trainingCurves/programMetrics";
import { type ChartRun, runId, scalarLines } from "../trainingCurves/ScalarChart";
import { usePolling } from "../usePolling";
import { chooseMetrics, type ChosenMetric, MAX_METRICS, sortByInterest } from "./metricChoice";
import { resolvedSpec } from "./resolvedSpec";

const MAX_POINTS = 200;
const MAX_RUNS = 3;
/** New runs and tags are rare. */
const RUNS_POLL_S = 10;
/** Where the window is wide, the log stands beside the charts. They have more room then, most of all in an ended job's
 * page, which has no strips below them. */
const WIDE_WINDOW_PX = 1800;
const CHART_PX = { usual: 110, wide: 170, wideEnded: 240 };
const DEFAULT_SETTINGS = readChartSettings(new URLSearchParams());

interface Preview {
  name: string;
  lines: ChartLine[];
  axis: AxisKind;
}

interface Props {
  job: Job;
  tasks: Task[];
  /** The seconds between two requests; 0 for an ended job. */
  seconds: number;
}

export function MetricPreviews({ job, tasks, seconds }: Props): ReactNode {
  const chosen = chooseMetrics(tasks);
  const reported = useReportedMetrics(job, chosen, seconds);
  const scalars = useScalarPreviews(
    job,
    chosen.map(({ name }) => name),
    seconds,
  );
  const previews = [...reported, ...scalars];
  if (!previews.length && !chosen.length) return null;
  return (
    <section className="card">
      <h2>
        <a href={href(["jobs", job.id, "curves"])}>{t("Training curves")}</a>
      </h2>
      <div className="metric-previews">
        {previews.map((preview) => (
          <MetricPreview key={preview.name} job={job} height={chartHeight(seconds > 0)} {...preview} />
        ))}
      </div>
    </section>
  );
}

function useReportedMetrics(job: Job, chosen: ChosenMetric[], seconds: number): Preview[] {
  const sources = [...new Set(chosen.map(({ task }) => task))].join(",");
  const query = { kind: "told", task: sources, points: MAX_POINTS };
  const response = usePolling(sources ? "jobs/{job}/series" : "", { job: job.id }, query, seconds).data;
  const series = useMemo(() => toProgramMetrics(job.id, response).series, [job.id, response]);
  return chosen.flatMap(({ name, task }) => {
    const own = series.filter((line) => line.task === task && line.name === name);
    const lines = metricLines(own, name, listMetricTasks(own, 0), DEFAULT_SETTINGS);
    return lines.length ? [{ name, lines, axis: metricAxis(own, name, DEFAULT_SETTINGS) }] : [];
  });
}

/** Returns previews of scalars, as many as there is room for beside the `reported` metrics. The event files are not
 * searched for if the job names no place for them, and not in outputs and checkpoints if programs report metrics: the
 * search costs the server a process. */
function useScalarPreviews(job: Job, reported: string[], seconds: number): Preview[] {
  const { board, checkpoint, outputs = [] } = resolvedSpec(job);
  const mayHold = Boolean(board?.path) || (!reported.length && Boolean(checkpoint?.path || outputs.length));
  const count = MAX_METRICS - reported.length;
  const wanted = count > 0 && mayHold;
  const [allRead, setAllRead] = useState(false);
  const runsPath = wanted ? "jobs/{job}/curves/runs" : "";
  const runsResponse = usePolling(runsPath, { job: job.id }, {}, allRead ? 0 : RUNS_POLL_S).data;
  useEffect(() => setAllRead(!seconds && runsResponse?.complete === true), [seconds, runsResponse]);
  const runs = (runsResponse?.runs ?? []).filter(({ tags }) => tags.scalar?.length);
  const names = [...new Set(runs.flatMap((run) => run.tags.scalar ?? []))].filter((tag) => !reported.includes(tag));
  const tags = sortByInterest(names).slice(0, count);
  const shownRuns = runs.filter((run) => tags.some((tag) => run.tags.scalar?.includes(tag))).slice(0, MAX_RUNS);
  const query = { tag: tags, run: shownRuns.map(({ run }) => run), points: MAX_POINTS };
  const path = wanted && tags.length ? "jobs/{job}/curves/scalars" : "";
  const series = usePolling(path, { job: job.id }, query, allRead ? 0 : seconds || RUNS_POLL_S).data?.series ?? [];
  return tags.flatMap((tag) => {
    const lines = linesOfTag(job, tag, shownRuns, series);
    return lines.length ? [{ name: tag, lines, axis: DEFAULT_SETTINGS.axis }] : [];
  });
}

function linesOfTag(job: Job, tag: string, runs: EventRun[], series: ScalarSeries[]): ChartLine[] {
  const chartRuns = runs.map(({ run, tags }, index): ChartRun => {
    const label = run === "." ? job.name || job.id : run;
    return { id: runId(job.id, run), job: job.id, run, label, colour: index, tags: tags.scalar ?? [] };
  });
  const ofTag = series.filter((each) => each.tag === tag).map((each) => [runId(job.id, each.run), each] as const);
  return scalarLines(Object.fromEntries(ofTag), chartRuns, DEFAULT_SETTINGS);
}

function chartHeight(live: boolean): number {
  if (window.innerWidth < WIDE_WINDOW_PX) return CHART_PX.usual;
  return live ? CHART_PX.wide : CHART_PX.wideEnded;
}

function MetricPreview({ job, name, lines, axis, height }: Preview & { job: Job; height: number }): ReactNode {
  const dark = useDarkMode();
  const pattern = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  return (
    <section className="metric-preview">
      <h3>
        <a href={href(["jobs", job.id, "curves"], { tag: pattern })}>{name}</a>
      </h3>
      <p>
        {lines.map((line) => (
          <span key={line.name}>
            <strong>{lastValue(line)}</strong>{" "}
            <span className="muted">
              {lines.length > 1 && <span className="swatch" style={{ background: lineColour(line.colour, dark) }} />}
              {line.name}
            </span>
          </span>
        ))}
      </p>
      <LineChart label={name} lines={lines} axis={axis} height={height} compact />
    </section>
  );
}

function lastValue({ y, nonFinite = [], x }: ChartLine): string {
  const last = x.length ? (x[x.length - 1] as number) : 0;
  const odd = nonFinite.find((each) => each.x >= last);
  const value = y.at(-1);
  return odd ? odd.name : typeof value === "number" ? formatNumber(value, 4) : "NaN";
}
