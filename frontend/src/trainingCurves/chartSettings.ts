// Reads the settings of the charts from the address, where `updateQuery` writes them.

import type { AxisKind } from "../charts/plotOptions";
import { updateQuery } from "../router";

export interface ChartSettings {
  axis: AxisKind;
  log: boolean;
  /** Draws the horizontal axis logarithmically. */
  logX: boolean;
  /** Leaves the most extreme values out of the range of values. */
  withoutOutliers: boolean;
  /** The part of the horizontal axis that is shown; undefined for all of it. */
  zoom: [from: number, to: number] | undefined;
  /** The weight of the smoothing: 0 (none) to 0.999. */
  smoothing: number;
  tag: string;
  /** What has a colour of its own: a run, or a job, whose runs then differ by dashes; undefined: a job if jobs are
   * compared. */
  colourBy: "run" | "job" | undefined;
  /** Whether the lines of a job's tasks are drawn as a band; undefined: those of many are. */
  band: boolean | undefined;
  /** The ids of hidden runs and tasks. */
  hidden: string[];
  /** The ids of runs and tasks whose lines are pinned: drawn strongly, and first in every list. */
  pinned: string[];
  /** The ids of jobs to compare with; on the compare page all but the first job. */
  with: string[];
}

const MAX_COMPARED = 9;

export function readChartSettings(query: URLSearchParams): ChartSettings {
  const axis = query.get("x");
  const [colourBy, band] = [query.get("colour"), query.get("band")];
  const smoothing = Number(query.get("smooth") ?? 0);
  return {
    axis: axis === "time" || axis === "relative" ? axis : "step",
    log: query.get("log") === "1",
    logX: query.get("logx") === "1",
    withoutOutliers: query.get("outliers") === "cut",
    zoom: parseRange(query.get("zoom")),
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    tag: query.get("tag") ?? "",
    colourBy: colourBy === "run" || colourBy === "job" ? colourBy : undefined,
    band: band === "1" ? true : band === "0" ? false : undefined,
    hidden: parseNames(query.get("hide")),
    pinned: parseNames(query.get("pin")),
    with: comparedIds(query).filter(Boolean).slice(0, MAX_COMPARED),
  };
}

function comparedIds(query: URLSearchParams): string[] {
  const compared = query.get("jobs")?.split(",").slice(1);
  return query.get("with")?.split(",") ?? compared ?? [query.get("b") ?? ""];
}

function parseNames(text: string | null): string[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.map(String) : [];
  } catch {
    return [];
  }
}

function parseRange(text: string | null): [from: number, to: number] | undefined {
  const [from, to] = (text ?? "").split(",", 2).map(Number);
  return from !== undefined && to !== undefined && from < to && Number.isFinite(to - from) ? [from, to] : undefined;
}

/** Shows a part of the horizontal axis in all charts; all of it without a part. */
export function zoomTo(range?: [from: number, to: number]): void {
  // Enough digits for milliseconds of a time, and for a step of long training.
  updateQuery({ zoom: range ? range.map((value) => Number(value.toPrecision(13))).join(",") : "" }, true);
}

/** Pins the line with this id in all charts, or unpins it. */
export function togglePin(id: string, pinned: string[]): void {
  const left = pinned.includes(id) ? pinned.filter((each) => each !== id) : [...pinned, id];
  updateQuery({ pin: left.length ? JSON.stringify(left) : "" });
}
