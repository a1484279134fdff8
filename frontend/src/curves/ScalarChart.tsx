// One tag of several runs. It asks for its points once it has come into view.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { ScalarPoint, Scalars } from "../api";
import { type Axis, LineChart } from "../chart/LineChart";
import { type Line, smoothed } from "../chart/lines";
import { get, jobPath, type Query } from "../client";
import { number } from "../format";
import { say } from "../language";
import type { Settings } from "./settings";

/** A run of some job, as it is called and coloured here. */
export interface Chosen {
  /** Labels of two may be the same: folders are named by programs. */
  id: string;
  job: string;
  run: string;
  label: string;
  colour: number;
  tags: string[];
}

export function runId(job: string, run: string): string {
  return `${job} run ${run}`;
}

interface Props {
  tag: string;
  runs: Chosen[];
  settings: Settings;
  seconds: number;
}

const POINTS = 1000;

export function ScalarChart({ tag, runs, settings, seconds }: Props): ReactNode {
  const card = useRef<HTMLElement>(null);
  const seen = useSeen(card);
  const { series, error } = useScalars(tag, runs, settings.axis, seen, seconds);
  const lines = useMemo(() => linesOf(series, runs, settings), [series, runs, settings]);
  return (
    <section className="card" ref={card} style={{ minHeight: 260 }}>
      <h2>{tag}</h2>
      {error && <p className="bad">{error}</p>}
      {lines.length > 0 && (
        <LineChart
          label={tag}
          lines={lines}
          axis={settings.axis}
          log={settings.log}
          height={210}
          show={(value) => number(value, 4)}
        />
      )}
    </section>
  );
}

type Found = Record<string, Scalars["series"][number]>;
type Asked = [job: string, run: string, id: string];

/** The points of each run, by its id. */
function useScalars(tag: string, runs: Chosen[], axis: Axis, seen: boolean, seconds: number): Told {
  const [told, setTold] = useState<Told>({ series: {}, error: "" });
  const wanted = JSON.stringify(runs.map(({ job, run, id }): Asked => [job, run, id]));
  useEffect(() => {
    if (!seen) return;
    const ended = new AbortController();
    const versions = new Map<string, number>();
    let timer = 0;
    const ask = async (): Promise<void> => {
      try {
        if (!document.hidden) {
          const found = await askAll(JSON.parse(wanted) as Asked[], { tag, x: axis }, versions, ended.signal);
          setTold((last) => (found ? { series: { ...last.series, ...found }, error: "" } : last));
        }
      } catch (problem) {
        if (ended.signal.aborted) return;
        setTold((last) => ({ ...last, error: (problem as Error).message }));
      }
      if (seconds) timer = window.setTimeout(ask, seconds * 1000);
    };
    void ask();
    return () => {
      ended.abort();
      window.clearTimeout(timer);
    };
  }, [tag, wanted, axis, seen, seconds]);
  return told;
}

interface Told {
  series: Found;
  error: string;
}

type Answer = Scalars & { version?: number; unchanged?: boolean };

/** What has changed since `versions`, by job; nothing when nothing has. */
async function askAll(
  runs: Asked[],
  query: Query,
  versions: Map<string, number>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  let all: Found | undefined;
  for (const job of new Set(runs.map(([id]) => id))) {
    const mine = runs.filter(([id]) => id === job);
    const asked = { ...query, run: mine.map(([, run]) => run), points: POINTS, since: versions.get(job) };
    const found = await get<Answer>(jobPath(job, "curves/scalars"), asked, signal);
    if (found.unchanged) continue;
    if (found.version !== undefined) versions.set(job, found.version);
    all ??= {};
    for (const one of found.series) {
      const id = mine.find(([, run]) => run === one.run)?.[2];
      if (id) all[id] = one;
    }
  }
  return all;
}

function linesOf(found: Found, runs: Chosen[], { axis, smoothing }: Settings): Line[] {
  const banded = !smoothing && runs.length <= 3;
  return runs.flatMap(({ id, label, colour }) => {
    const one = found[id];
    if (!one?.points.length) return [];
    const first = one.points[0] as ScalarPoint;
    const x = one.points.map(([step, time]) => (axis === "step" ? step : axis === "time" ? time : time - first[1]));
    const y = one.points.map((point) => point[3]);
    const note = one.nan ? { note: say("({count} not a number)", { count: one.nan }) } : {};
    if (smoothing) {
      return [
        { name: label, colour, x, y, faint: true },
        { name: label, colour, x, y: smoothed(y, smoothing), ...note },
      ];
    }
    const edges = banded ? { low: one.points.map((point) => point[2]), high: one.points.map((point) => point[4]) } : {};
    return [{ name: label, colour, x, y, ...edges, ...note }];
  });
}

function useSeen(place: { current: HTMLElement | null }): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const watching = new IntersectionObserver((entries) => setSeen(entries.some((entry) => entry.isIntersecting)), {
      rootMargin: "200px",
    });
    watching.observe(place.current);
    return () => watching.disconnect();
  }, [place]);
  return seen;
}
