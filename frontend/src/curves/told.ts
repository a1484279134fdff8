// Curves that the programs tell of themselves by howdah.here.metric: over time, for their points come without steps.

import { useMemo } from "react";
import type { Job, QueryOf, Usage, UsagePoint } from "../api";
import type { Axis } from "../chart/LineChart";
import { type Line, smoothed } from "../chart/lines";
import { spread } from "../job/names";
import { usePolled } from "../polling";
import type { Settings } from "./settings";

const POINTS = 1000;

/** What a task tells under one name. */
export interface ToldLine {
  job: string;
  task: string;
  name: string;
  points: UsagePoint[];
}

export interface Told {
  /** All names, also those of tasks that were not asked for. */
  tags: string[];
  lines: ToldLine[];
}

/** A task that tells something, as it is called and coloured here. */
export interface Teller {
  /** No run of event files has this one, though it may be called like the task. */
  id: string;
  label: string;
  colour: number;
}

/** What there is so far, asked again every `seconds` (0: once). */
export function useTold(job: Job, seconds: number): Told & { error: string } {
  const polled = usePolled("jobs/{job}/series", { job: job.id }, toldQuery(job), seconds);
  const found = polled.data;
  const told = useMemo(() => toldOf(job.id, found), [job.id, found]);
  return { ...told, error: polled.error?.message ?? "" };
}

/** All names at once: an address has no room for many, and a name may hold what would part two. */
export function toldQuery(job: Job): QueryOf<"jobs/{job}/series"> {
  return { kind: "told", task: spread(job).join(","), points: POINTS };
}

export function toldOf(job: string, found: Usage | undefined): Told {
  const tags = (found?.names ?? []).filter(({ kind }) => kind === "told").map(({ name }) => name);
  return { tags, lines: (found?.series ?? []).map(({ task, name, points }) => ({ job, task, name, points })) };
}

/** Whose lines these are, coloured from `first` on; `compared`: called by their jobs, too. */
export function tellersOf(lines: ToldLine[], first: number, compared: boolean): Teller[] {
  const found = new Map<string, Teller>();
  for (const line of lines) {
    const label = compared ? `${line.job} ${line.task}` : line.task;
    const colour = first + found.size;
    if (!found.has(tellerOf(line))) found.set(tellerOf(line), { id: tellerOf(line), label, colour });
  }
  return [...found.values()];
}

function tellerOf({ job, task }: ToldLine): string {
  return `${job} told ${task}`;
}

/** Steps are not known, so time stands for them. */
export function axisOf({ axis }: Settings): Axis {
  return axis === "step" ? "time" : axis;
}

/** The lines of one name, of these tellers. */
export function toldLines(lines: ToldLine[], tag: string, tellers: Teller[], settings: Settings): Line[] {
  const shown = new Map(tellers.map((teller) => [teller.id, teller]));
  return lines.flatMap((line) => {
    const { name, points } = line;
    const teller = shown.get(tellerOf(line));
    if (name !== tag || !teller || !points.length) return [];
    const begun = settings.axis === "relative" ? (points[0]?.[0] ?? 0) : 0;
    const x = points.map(([time]) => time - begun);
    const y = points.map(([, , mean]) => mean);
    const drawn = { name: teller.label, colour: teller.colour, x };
    if (!settings.smoothing) return [{ ...drawn, y }];
    return [
      { ...drawn, y, faint: true },
      { ...drawn, y: smoothed(y, settings.smoothing) },
    ];
  });
}
