// A chart of one tag for several runs. The points are requested once the chart is in view.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { ScalarSeries as ScalarLine, QueryParams, ScalarPoint } from "../api";
import { apiGet } from "../apiClient";
import { type ChartLine, smooth } from "../charts/chartLines";
import { t } from "../language";
import type { ChartSettings } from "./chartSettings";
import { toBand } from "./rankBand";
import { TagChart } from "./TagChart";

/** A run of some job, with its label and colour in the charts. */
export interface ChartRun {
  /** Unique, unlike the label: programs choose the names of their directories. */
  id: string;
  job: string;
  run: string;
  label: string;
  colour: number;
  dash?: number;
  tags: string[];
}

export function runId(job: string, run: string): string {
  return `${job} run ${run}`;
}

interface Props {
  tag: string;
  runs: ChartRun[];
  settings: ChartSettings;
  /** The names of several jobs by their ids. */
  jobNames: Map<string, string>;
  seconds: number;
}

const MAX_POINTS = 1000;
const MAX_POINTS_EXPANDED = 5000;

export function ScalarChart({ tag, runs, settings, jobNames, seconds }: Props): ReactNode {
  const card = useRef<HTMLElement>(null);
  const inView = useInView(card);
  const [expanded, setExpanded] = useState(false);
  const { series, error } = useScalars(tag, runs, inView, seconds, expanded ? MAX_POINTS_EXPANDED : MAX_POINTS);
  const lines = useMemo(() => bandedLines(series, runs, settings, jobNames), [series, runs, settings, jobNames]);
  return (
    <section className="card" ref={card} style={{ minHeight: 260 }}>
      {error && <p className="bad">{error}</p>}
      {lines.length ? (
        <TagChart tag={tag} lines={lines} axis={settings.axis} settings={settings} onExpand={setExpanded} />
      ) : (
        <h2>{tag}</h2>
      )}
    </section>
  );
}

type SeriesByRun = Record<string, ScalarLine>;
type RunKey = [job: string, run: string, id: string];

/** Returns the points of each run, by the run's id. */
function useScalars(tag: string, runs: ChartRun[], inView: boolean, seconds: number, points: number): ScalarsState {
  const [state, setState] = useState<ScalarsState>({ series: {}, error: "" });
  const runKeys = JSON.stringify(runs.map(({ job, run, id }): RunKey => [job, run, id]));
  useEffect(() => {
    if (!inView) return;
    const stopped = new AbortController();
    const versions = new Map<string, number>();
    let timer = 0;
    const request = async (): Promise<void> => {
      try {
        if (!document.hidden) {
          const found = await fetchChangedScalars(
            JSON.parse(runKeys) as RunKey[],
            { tag, points },
            versions,
            stopped.signal,
          );
          setState((last) => (found ? { series: { ...last.series, ...found }, error: "" } : last));
        }
      } catch (problem) {
        if (stopped.signal.aborted) return;
        setState((last) => ({ ...last, error: (problem as Error).message }));
      }
      if (seconds) timer = window.setTimeout(request, seconds * 1000);
    };
    void request();
    return () => {
      stopped.abort();
      window.clearTimeout(timer);
    };
  }, [tag, runKeys, inView, seconds, points]);
  return state;
}

interface ScalarsState {
  series: SeriesByRun;
  error: string;
}

/** Fetches the series of jobs that have changed since `versions`; undefined if none has. */
async function fetchChangedScalars(
  runs: RunKey[],
  wanted: Pick<QueryParams<"jobs/{job}/curves/scalars">, "tag" | "points">,
  versions: Map<string, number>,
  signal: AbortSignal,
): Promise<SeriesByRun | undefined> {
  let all: SeriesByRun | undefined;
  for (const job of new Set(runs.map(([id]) => id))) {
    const runsOfJob = runs.filter(([id]) => id === job);
    const params: QueryParams<"jobs/{job}/curves/scalars"> = {
      ...wanted,
      run: runsOfJob.map(([, run]) => run),
    };
    const found = await apiGet("jobs/{job}/curves/scalars", { job }, { ...params, since: versions.get(job) }, signal);
    if ("unchanged" in found) continue;
    versions.set(job, found.version);
    all ??= {};
    for (const one of found.series) {
      const id = runsOfJob.find(([, run]) => run === one.run)?.[2];
      if (id) all[id] = one;
    }
  }
  return all;
}

/** Returns the lines of the runs, as a band for each job if the reader wants it. */
function bandedLines(
  seriesByRun: SeriesByRun,
  runs: ChartRun[],
  settings: ChartSettings,
  jobNames: Map<string, string>,
): ChartLine[] {
  if (!settings.band) return scalarLines(seriesByRun, runs, settings);
  const jobs = [...new Set(runs.map(({ job }) => job))];
  return jobs.flatMap((job) => {
    const lines = scalarLines(seriesByRun, runs.filter((run) => run.job === job), settings);
    const named = jobs.length > 1 ? ` · ${jobNames.get(job) ?? job}` : "";
    return toBand(lines, (count) => t("Median of {count} runs", { count }) + named);
  });
}

export function scalarLines(seriesByRun: SeriesByRun, runs: ChartRun[], settings: ChartSettings): ChartLine[] {
  const { axis, smoothing } = settings;
  const showRange = !smoothing && runs.length <= 3;
  return runs.flatMap(({ id, label, colour, dash = 0 }): ChartLine[] => {
    const series = seriesByRun[id];
    if (!series?.points.length) return [];
    const startedAt = (series.points[0] as ScalarPoint)[1];
    const axisValue = (step: number, time: number): number =>
      axis === "step" ? step : axis === "time" ? time : time - startedAt;
    const x = series.points.map(([step, time]) => axisValue(step, time));
    const y = series.points.map((point) => point[3]);
    const notes: Pick<ChartLine, "note" | "nonFinite"> = {
      note: [
        series.nan ? t("({count} NaN)", { count: series.nan }) : "",
        series.infinite ? t("({count} infinite)", { count: series.infinite }) : "",
      ].join(" "),
      nonFinite: series.odd.map(([step, time, name]) => ({ x: axisValue(step, time), name })),
    };
    const base = { id, name: label, colour, dash, pinned: settings.pinned.includes(id), x };
    if (smoothing) {
      return [
        { ...base, y, faint: true },
        { ...base, y: smooth(y, smoothing), smoothed: true, ...notes },
      ];
    }
    const range: Pick<ChartLine, "low" | "high"> = showRange
      ? { low: series.points.map((point) => point[2]), high: series.points.map((point) => point[4]) }
      : {};
    return [{ ...base, y, ...range, ...notes }];
  });
}

function useInView(element: { current: HTMLElement | null }): boolean {
  const [inView, setInView] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) => setInView(entries.some((entry) => entry.isIntersecting)), {
      rootMargin: "200px",
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return inView;
}
