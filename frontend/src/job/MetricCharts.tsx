// A chart for each resource metric that was sampled and for each metric that programs report.

import { type ReactNode, useMemo } from "react";
import type { SeriesResponse } from "../api";
import { ChartCard } from "../charts/ChartCard";
import type { ChartExtent } from "../charts/plotOptions";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { chooseRange, selectRange, type TimeRange } from "../components/timeRange";
import { formatBytes, formatNumber, formatPercent } from "../format";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { type LineGroups, MAX_POINTS, TITLES, toCharts } from "./metricLines";

interface Props {
  job: string;
  tasks: string[];
  live: boolean;
  /** How the lines of tasks are drawn together; one line for each task without it. */
  groups?: LineGroups | undefined;
  range?: TimeRange;
}

export default function MetricCharts({ job, tasks, live, groups, range }: Props): ReactNode {
  const query = { kind: "all", task: tasks.join(","), points: MAX_POINTS, from: range?.from, to: range?.to };
  const polled = usePolling(tasks.length ? "jobs/{job}/series" : "", { job }, query, live ? 3 : 0);
  const series = polled.data?.series;
  const charts = useMemo(() => toCharts(series ?? [], groups), [series, groups]);
  const span = timeSpan(series ?? [], range);
  if (!tasks.length) return <EmptyState text={t("No measurements yet.")} />;
  if (!series) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  if (!charts.length)
    return <EmptyState text={range?.from ? t("No measurements in this time range.") : t("No measurements yet.")} />;
  return (
    <>
      <StaleNotice polled={polled} />
      <div className="charts">
        {charts.map(({ name, unit, lines }) => {
          const title = TITLES[name] ? t(TITLES[name]) : name;
          return (
            <section key={name} className="card">
              <ChartCard
                label={title}
                lines={lines}
                axis="time"
                height={170}
                syncKey="usage"
                formatValue={valueFormatter(unit)}
                extent={{ ...VALUE_EXTENTS[unit], ...(span ? { x: span } : {}) }}
                {...(range ? { onSelect: selectRange, onReset: () => chooseRange("") } : {})}
                zoomed={range?.to !== undefined}
              />
            </section>
          );
        })}
      </div>
    </>
  );
}

/** Ticks of sizes stand at powers of two: 256 KiB, 64 MiB. */
const BINARY_STEPS = Array.from({ length: 50 }, (_, index) => 2 ** (index - 20));

const VALUE_EXTENTS: Record<string, ChartExtent> = {
  MiB: { atLeast: 1, steps: BINARY_STEPS },
  "MiB/s": { atLeast: 0.0625, steps: BINARY_STEPS },
  share: { atLeast: 1 },
  cores: { atLeast: 0.1 },
};

/** Returns the time that all charts have in common, so that they lie below each other; undefined for a moment. */
function timeSpan(
  series: NonNullable<SeriesResponse["series"]>,
  range: TimeRange | undefined,
): [from: number, to: number] | undefined {
  if (range?.from !== undefined && range.to !== undefined) return [range.from, range.to];
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { points } of series) {
    const [first, last] = [points[0]?.[0], points.at(-1)?.[0]];
    if (first === undefined || last === undefined) continue;
    from = Math.min(from, first);
    to = Math.max(to, last);
  }
  return from < to ? [from, to] : undefined;
}

function valueFormatter(unit: string): (value: number) => string {
  if (unit === "MiB") return (value) => formatBytes(value * 1048576);
  if (unit === "MiB/s") return (value) => `${formatBytes(value * 1048576)}/s`;
  if (unit === "share") return formatPercent;
  return (value) => formatNumber(value, 3);
}
