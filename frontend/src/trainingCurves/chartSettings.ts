// How curves are shown; read from the address, where `amend` writes it.

import type { AxisKind } from "../charts/LineChart";

export interface ChartSettings {
  axis: AxisKind;
  log: boolean;
  /** 0: not at all, to 0.999. */
  smoothing: number;
  tag: string;
  /** Ids of runs and of tasks that tell something. */
  hidden: string[];
  /** Jobs to compare with; where two are compared it is the other one. */
  with: string[];
}

export function readChartSettings(query: URLSearchParams): ChartSettings {
  const axis = query.get("x");
  const smoothing = Number(query.get("smooth") ?? 0);
  return {
    axis: axis === "time" || axis === "relative" ? axis : "step",
    log: query.get("log") === "1",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    tag: query.get("tag") ?? "",
    hidden: parseNames(query.get("hide")),
    with: (query.get("with") ?? query.get("b") ?? "").split(",").filter(Boolean).slice(0, 5),
  };
}

function parseNames(text: string | null): string[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.map(String) : [];
  } catch {
    return [];
  }
}
