// Names of columns that jobs have under names of their own, as in the API: `metric:NAME:last`, `param:NAME`.

import type { JobRow } from "../api";
import { formatNumber } from "../format";

export interface RunColumn {
  /** The column's name, in the address and in requests. */
  key: string;
  title: string;
  numeric: boolean;
  value: (row: JobRow) => string;
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
  };
}

function paramColumn(name: string): RunColumn {
  return {
    key: `param:${encodeName(name)}`,
    title: name,
    numeric: false,
    value: ({ params }) => params[name] ?? "",
  };
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
