// A chart for each resource metric that was sampled and for each metric that programs report.

import { type ReactNode, useMemo } from "react";
import type { SeriesResponse } from "../api";
import { type ChartLine, averageLines } from "../charts/chartLines";
import { LineChart } from "../charts/LineChart";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { formatBytes, formatNumber, formatPercent } from "../format";
import { messageKey, t } from "../language";
import { usePolling } from "../usePolling";

const RESOURCE_METRICS = [
  "cpu",
  "memory_mib",
  "read_mib_s",
  "written_mib_s",
  "received_mib_s",
  "sent_mib_s",
  "gpu",
  "gpu_memory_mib",
  "gpu_celsius",
  "gpu_watts",
  "progress",
];

const TITLES: Record<string, string> = {
  cpu: messageKey("CPU (cores)"),
  memory_mib: messageKey("Memory"),
  read_mib_s: messageKey("Disk read"),
  written_mib_s: messageKey("Disk write"),
  received_mib_s: messageKey("Network received"),
  sent_mib_s: messageKey("Network sent"),
  gpu: messageKey("GPU usage (least busy GPU)"),
  gpu_memory_mib: messageKey("GPU memory"),
  gpu_celsius: messageKey("GPU temperature (°C)"),
  gpu_watts: messageKey("GPU power (W)"),
  progress: messageKey("Progress"),
};

interface Props {
  job: string;
  tasks: string[];
  live: boolean;
  /** Draws one line per role, the mean of its tasks, instead of one line per task. */
  byRole?: boolean;
}

const MAX_POINTS = 300;

export default function MetricCharts({ job, tasks, live, byRole = false }: Props): ReactNode {
  const query = { kind: "all", task: tasks.join(","), points: MAX_POINTS };
  const polled = usePolling(tasks.length ? "jobs/{job}/series" : "", { job }, query, live ? 3 : 0);
  const series = polled.data?.series;
  const charts = useMemo(() => toCharts(series ?? [], byRole), [series, byRole]);
  if (!series) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  if (!charts.length) return <EmptyState text={t("No measurements yet.")} />;
  return (
    <>
      <StaleNotice polled={polled} />
      <div className="charts">
        {charts.map(({ name, unit, lines }) => {
          const title = TITLES[name] ? t(TITLES[name]) : name;
          return (
            <section key={name} className="card">
              <h2>{title}</h2>
              <LineChart
                label={title}
                lines={lines}
                axis="time"
                height={170}
                syncKey="usage"
                formatValue={valueFormatter(unit)}
              />
            </section>
          );
        })}
      </div>
    </>
  );
}

function valueFormatter(unit: string): (value: number) => string {
  if (unit === "MiB") return (value) => formatBytes(value * 1048576);
  if (unit === "MiB/s") return (value) => `${formatBytes(value * 1048576)}/s`;
  if (unit === "share") return formatPercent;
  return (value) => formatNumber(value, 3);
}

interface Chart {
  name: string;
  unit: string;
  lines: ChartLine[];
}

function toCharts(series: NonNullable<SeriesResponse["series"]>, byRole: boolean): Chart[] {
  const charts = new Map<string, Chart>();
  for (const { task, name, unit, points } of series) {
    if (!points.some(([, , mean]) => mean !== null)) continue;
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
  return all.map((chart) => ({ ...chart, lines: byRole ? averageByRole(chart.lines) : dropRanges(chart.lines) }));
}

/** Removes the ranges of all lines if there are many, because the ranges would cover each other. */
function dropRanges(lines: ChartLine[]): ChartLine[] {
  return lines.length <= 3 ? lines : lines.map(({ name, colour, x, y }) => ({ name, colour, x, y }));
}

function averageByRole(lines: ChartLine[]): ChartLine[] {
  const linesByRole = new Map<string, ChartLine[]>();
  for (const line of lines) {
    const role = line.name.split(":")[0] as string;
    linesByRole.set(role, [...(linesByRole.get(role) ?? []), line]);
  }
  return [...linesByRole].map(([role, roleLines], index) =>
    averageLines(roleLines, MAX_POINTS, `${role} × ${roleLines.length}`, index),
  );
}
