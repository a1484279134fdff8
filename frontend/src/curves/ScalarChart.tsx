// One tag of several runs. It asks for its points once it has come into view.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { Line as ScalarLine, QueryOf, ScalarPoint } from "../api";
import { LineChart } from "../chart/LineChart";
import { type Line, smoothed } from "../chart/lines";
import { get } from "../client";
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
  const { series, error } = useScalars(tag, runs, seen, seconds);
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

type Found = Record<string, ScalarLine>;
type Asked = [job: string, run: string, id: string];

/** The points of each run, by its id. */
function useScalars(tag: string, runs: Chosen[], seen: boolean, seconds: number): Told {
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
          const found = await askAll(JSON.parse(wanted) as Asked[], tag, versions, ended.signal);
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
  }, [tag, wanted, seen, seconds]);
  return told;
}

interface Told {
  series: Found;
  error: string;
}

/** What has changed since `versions`, by job; nothing when nothing has. */
async function askAll(
  runs: Asked[],
  tag: string,
  versions: Map<string, number>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  let all: Found | undefined;
  for (const job of new Set(runs.map(([id]) => id))) {
    const mine = runs.filter(([id]) => id === job);
    const asked: QueryOf<"jobs/{job}/curves/scalars"> = { tag, run: mine.map(([, run]) => run), points: POINTS };
    const found = await get("jobs/{job}/curves/scalars", { job }, { ...asked, since: versions.get(job) }, signal);
    if ("unchanged" in found) continue;
    versions.set(job, found.version);
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
    const begun = (one.points[0] as ScalarPoint)[1];
    const across = (step: number, time: number): number =>
      axis === "step" ? step : axis === "time" ? time : time - begun;
    const x = one.points.map(([step, time]) => across(step, time));
    const y = one.points.map((point) => point[3]);
    const note = {
      note: [
        one.nan ? say("({count} NaN)", { count: one.nan }) : "",
        one.infinite ? say("({count} infinite)", { count: one.infinite }) : "",
      ].join(" "),
      odd: one.odd.map(([step, time, name]) => ({ x: across(step, time), name })),
    };
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
