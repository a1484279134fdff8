// What tasks use: a chart for each kind of it that was sampled.

import { type ReactNode, useMemo } from "react";
import type { Usage } from "../api";
import { LineChart } from "../chart/LineChart";
import { type Line, merged } from "../chart/lines";
import { bytes, number, percent } from "../format";
import { key, say } from "../language";
import { usePolled } from "../polling";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";

const NAMES = [
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
  cpu: key("CPU (cores)"),
  memory_mib: key("Memory"),
  read_mib_s: key("Read from disk"),
  written_mib_s: key("Written to disk"),
  received_mib_s: key("Received"),
  sent_mib_s: key("Sent"),
  gpu: key("GPU use (of the idlest)"),
  gpu_memory_mib: key("GPU memory"),
  gpu_celsius: key("GPU temperature (°C)"),
  gpu_watts: key("GPU power (W)"),
  progress: key("Progress"),
};

interface Props {
  job: string;
  tasks: string[];
  live: boolean;
  /** One line a role, the mean of its tasks, instead of one a task. */
  byRole?: boolean;
}

const POINTS = 300;

export default function UsageCharts({ job, tasks, live, byRole = false }: Props): ReactNode {
  const query = { kind: "all", task: tasks.join(","), points: POINTS };
  const polled = usePolled(tasks.length ? "jobs/{job}/series" : "", { job }, query, live ? 3 : 0);
  const found = polled.data?.series;
  const charts = useMemo(() => chartsOf(found ?? [], byRole), [found, byRole]);
  if (!found) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  if (!charts.length) return <Nothing text={say("Nothing was measured yet.")} />;
  return (
    <>
      <Stale polled={polled} />
      <div className="charts">
        {charts.map(({ name, unit, lines }) => {
          const title = TITLES[name] ? say(TITLES[name]) : name;
          return (
            <section key={name} className="card">
              <h2>
                {title}
              </h2>
              <LineChart label={title} lines={lines} axis="time" height={170} together="usage" show={shower(unit)} />
            </section>
          );
        })}
      </div>
    </>
  );
}

function shower(unit: string): (value: number) => string {
  if (unit === "MiB") return (value) => bytes(value * 1048576);
  if (unit === "MiB/s") return (value) => `${bytes(value * 1048576)}/s`;
  if (unit === "share") return percent;
  return (value) => number(value, 3);
}

interface Chart {
  name: string;
  unit: string;
  lines: Line[];
}

function chartsOf(series: NonNullable<Usage["series"]>, byRole: boolean): Chart[] {
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
  const order = (name: string): number => (NAMES.includes(name) ? NAMES.indexOf(name) : NAMES.length);
  const all = [...charts.values()].sort((a, b) => order(a.name) - order(b.name));
  return all.map((chart) => ({ ...chart, lines: byRole ? roles(chart.lines) : plainer(chart.lines) }));
}

/** Edges are drawn for a few lines only; of many they would cover each other. */
function plainer(lines: Line[]): Line[] {
  return lines.length <= 3 ? lines : lines.map(({ name, colour, x, y }) => ({ name, colour, x, y }));
}

function roles(lines: Line[]): Line[] {
  const found = new Map<string, Line[]>();
  for (const line of lines) {
    const role = line.name.split(":")[0] as string;
    found.set(role, [...(found.get(role) ?? []), line]);
  }
  return [...found].map(([role, of], index) => merged(of, POINTS, `${role} × ${of.length}`, index));
}
