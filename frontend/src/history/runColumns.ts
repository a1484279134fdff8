// Names of columns that jobs have under names of their own, as in the API: `metric:NAME:last`, `param:NAME`.

import type { JobRow } from "../api";
import { formatAmount, formatDuration, formatNumber } from "../format";
import { t } from "../language";

export interface RunColumn {
  /** The column's name, in the address and in requests. */
  key: string;
  title: string;
  numeric: boolean;
  value: (row: JobRow) => string;
  /** Returns the value for an axis; undefined if the job has none. */
  raw: (row: JobRow) => number | string | undefined;
}

interface RunNames {
  metrics: string[];
  params: string[];
}

const METRIC_VALUES = ["last", "min", "max"] as const;
const KEY = /^(?:param:(?<param>.+)|metric:(?<metric>.+?)(?::(?:last|min|max))?)$/s;

/** Returns the columns of the names that jobs in view have, and of those that the address names. */
export function runColumns(names: RunNames, chosen: string): RunColumn[] {
  const metrics = new Set(names.metrics);
  const params = new Set(names.params);
  for (const key of chosen.split(",")) {
    const found = KEY.exec(key)?.groups;
    if (found?.metric) metrics.add(decodeName(found.metric));
    if (found?.param) params.add(decodeName(found.param));
  }
  return [
    ...[...metrics].flatMap((name) => METRIC_VALUES.map((value) => metricColumn(name, value))),
    ...[...params].map(paramColumn),
  ];
}

function metricColumn(name: string, value: (typeof METRIC_VALUES)[number]): RunColumn {
  return {
    key: `metric:${encodeName(name)}:${value}`,
    title: value === "last" ? name : `${name} (${value})`,
    numeric: true,
    value: ({ metrics }) => (metrics[name] ? formatNumber(metrics[name][value], 4) : ""),
    raw: ({ metrics }) => metrics[name]?.[value],
  };
}

function paramColumn(name: string): RunColumn {
  return {
    key: `param:${encodeName(name)}`,
    title: name,
    numeric: false,
    value: ({ params }) => params[name] ?? "",
    raw: ({ params }) => numberOrText(params[name]),
  };
}

/** Returns the columns of numbers that every job has, which can be axes of charts, too. */
export function fixedNumberColumns(): RunColumn[] {
  const columns: [key: "duration_s" | "gpu_hours" | "cpu_hours" | "memory_gib_hours", title: string][] = [
    ["duration_s", t("Duration")],
    ["gpu_hours", t("GPU hours")],
    ["cpu_hours", t("CPU hours")],
    ["memory_gib_hours", t("Memory (GiB hours)")],
  ];
  return columns.map(([key, title]) => ({
    key,
    title,
    numeric: true,
    value: (row) => (key === "duration_s" ? formatDuration(row[key]) : formatAmount(row[key])),
    raw: (row) => row[key],
  }));
}

function numberOrText(text: string | undefined): number | string | undefined {
  return text?.trim() && Number.isFinite(Number(text)) ? Number(text) : text;
}

function encodeName(name: string): string {
  return name.replace(/[%,]/g, encodeURIComponent);
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
