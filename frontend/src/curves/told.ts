// Curves that the programs tell of themselves by howdah.here.metric: over time, for their points come without steps.

import { useMemo } from "react";
import type { Job, Usage } from "../api";
import type { Axis } from "../chart/LineChart";
import { type Line, smoothed } from "../chart/lines";
import { jobPath } from "../client";
import { spread } from "../job/names";
import { usePolled } from "../polling";
import type { Settings } from "./settings";

const POINTS = 1000;

export interface Told {
  /** Names, and the tasks that tell something. */
  tags: string[];
  tasks: string[];
  series: NonNullable<Usage["series"]>;
  error: string;
}

/** What there is so far, asked again every `seconds` (0: once). */
export function useTold(job: Job, seconds: number): Told {
  const path = jobPath(job.id, "series");
  const known = usePolled<Usage>(path, {}, seconds);
  const tags = (known.data?.names ?? []).filter(({ kind }) => kind === "told").map(({ name }) => name);
  const query = { name: tags.join(","), task: spread(job).join(","), points: POINTS };
  const polled = usePolled<Usage>(tags.length ? path : "", query, seconds);
  const found = polled.data?.series;
  const error = (polled.error ?? known.error)?.message ?? "";
  const told = useMemo(() => {
    const series = found ?? [];
    return { tasks: [...new Set(series.map(({ task }) => task))], series };
  }, [found]);
  return { ...told, tags, error };
}

/** Steps are not known, so time stands for them. */
export function axisOf({ axis }: Settings): Axis {
  return axis === "step" ? "time" : axis;
}

/** The lines of one name; `colours` are those of the tasks that are shown. */
export function toldLines(told: Told, tag: string, colours: Map<string, number>, settings: Settings): Line[] {
  return told.series.flatMap(({ task, name, points }) => {
    const colour = colours.get(task);
    if (name !== tag || colour === undefined || !points.length) return [];
    const begun = settings.axis === "relative" ? (points[0]?.[0] ?? 0) : 0;
    const x = points.map(([time]) => time - begun);
    const y = points.map(([, , mean]) => mean);
    if (!settings.smoothing) return [{ name: task, colour, x, y }];
    return [
      { name: task, colour, x, y, faint: true },
      { name: task, colour, x, y: smoothed(y, settings.smoothing) },
    ];
  });
}
