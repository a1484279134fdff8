// Reads the settings of the charts from the address, where `updateQuery` writes them.

import type { AxisKind } from "../charts/LineChart";

export interface ChartSettings {
  axis: AxisKind;
  log: boolean;
  /** The weight of the smoothing: 0 (none) to 0.999. */
  smoothing: number;
  tag: string;
  /** The ids of hidden runs and tasks. */
  hidden: string[];
  /** The ids of jobs to compare with; on the compare page all but the first job. */
  with: string[];
}

const MAX_COMPARED = 9;

export function readChartSettings(query: URLSearchParams): ChartSettings {
  const axis = query.get("x");
  const smoothing = Number(query.get("smooth") ?? 0);
  return {
    axis: axis === "time" || axis === "relative" ? axis : "step",
    log: query.get("log") === "1",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    tag: query.get("tag") ?? "",
    hidden: parseNames(query.get("hide")),
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
