// The lines of the charts of resource usage: one for each task, or for each group of tasks.

import type { SeriesResponse } from "../api";
import { averageLines, type ChartLine, sumLines } from "../charts/chartLines";
import { messageKey } from "../language";

export const MAX_POINTS = 300;
/** More points than buckets, so that no bucket lacks one of the lines that are added up. */
const SUM_BUCKETS = MAX_POINTS / 2;
const MAX_LINES_WITH_RANGE = 3;

export const TITLES: Record<string, string> = {
  cpu: messageKey("CPU (cores)"),
  memory_mib: messageKey("Memory"),
  read_mib_s: messageKey("Disk read"),
  written_mib_s: messageKey("Disk write"),
  received_mib_s: messageKey("Network received"),
  sent_mib_s: messageKey("Network sent"),
  gpu: messageKey("GPU usage"),
  gpu_memory_mib: messageKey("GPU memory"),
  gpu_celsius: messageKey("GPU temperature (°C)"),
  gpu_watts: messageKey("GPU power (W)"),
  progress: messageKey("Progress"),
};
const RESOURCE_METRICS = Object.keys(TITLES);
/** What tasks use of their node together. */
const ADDITIVE = new Set(["cpu", "memory_mib", "read_mib_s", "written_mib_s", "received_mib_s", "sent_mib_s"]);

export interface LineGroups {
  /** Returns the group of a task, as the legend names it; empty for a task that is left out. */
  nameOf: (task: string) => string;
  /** The legend says of several tasks how many a group has. */
  counted?: boolean;
  /** Resources are added up in a group; else lines are means. Other metrics are always means. */
  sum?: boolean;
  /** Only metrics of GPUs are drawn. */
  gpusOnly?: boolean;
}

export interface MetricChart {
  name: string;
  unit: string;
  lines: ChartLine[];
}

type Series = NonNullable<SeriesResponse["series"]>;

export function toCharts(series: Series, groups?: LineGroups): MetricChart[] {
  const charts = new Map<string, MetricChart>();
  for (const { task, name, unit, points } of series) {
    if (!points.some(([, , mean]) => mean !== null)) continue;
    if (groups?.gpusOnly && !name.startsWith("gpu")) continue;
    const chart = charts.get(name) ?? { name, unit, lines: [] };
    charts.set(name, chart);
    chart.lines.push({
      name: task,
      colour: chart.lines.length,
      x: points.map(([time]) => time),
      y: points.map(([, , mean]) => mean),
      low: points.map(([, low]) => low),
      high: points.map(([, , , high]) => high),
    });
  }
  const order = (name: string): number =>
    RESOURCE_METRICS.includes(name) ? RESOURCE_METRICS.indexOf(name) : RESOURCE_METRICS.length;
  const all = [...charts.values()].sort((a, b) => order(a.name) - order(b.name));
  return all.map((chart) => ({ ...chart, lines: dropRanges(groups ? group(chart, groups) : chart.lines) }));
}

/** Removes the ranges of all lines if there are many, because the ranges would cover each other. */
function dropRanges(lines: ChartLine[]): ChartLine[] {
  if (lines.length <= MAX_LINES_WITH_RANGE) return lines;
  return lines.map(({ name, colour, x, y }) => ({ name, colour, x, y }));
}

function group(chart: MetricChart, { nameOf, counted, sum }: LineGroups): ChartLine[] {
  const members = new Map<string, ChartLine[]>();
  for (const line of chart.lines) {
    const name = nameOf(line.name);
    if (name) members.set(name, [...(members.get(name) ?? []), line]);
  }
  return [...members].map(([name, lines], index) => {
    const label = counted && lines.length > 1 ? `${name} × ${lines.length}` : name;
    if (lines.length === 1) return { ...(lines[0] as ChartLine), name: label, colour: index };
    if (sum && ADDITIVE.has(chart.name)) return sumLines(lines, SUM_BUCKETS, label, index);
    return averageLines(lines, MAX_POINTS, label, index);
  });
}
