import { type ReactNode, useMemo } from "react";
import type { HyperparameterRun } from "../api";
import { EmptyState } from "../components/EmptyState";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { formatNumber, toPlainText } from "../format";
import { t } from "../language";
import { usePolling } from "../usePolling";

/** A table with a row per run: its hyperparameters and its metrics. */
export default function HyperparameterTable({ job, seconds }: { job: string; seconds: number }): ReactNode {
  const polled = usePolling("jobs/{job}/curves/hparams", { job }, {}, seconds);
  const rows = polled.data?.runs;
  const columns = useMemo(() => hyperparameterColumns(rows ?? []), [rows]);
  if (!rows) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  if (!rows.length) return <EmptyState text={t("No hyperparameters yet.")} />;
  return <VirtualTable label={t("Hyperparameters")} columns={columns} rows={rows} rowKey={(row) => row.run} />;
}

function hyperparameterColumns(rows: HyperparameterRun[]): TableColumn<HyperparameterRun>[] {
  const parameterNames = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const metricNames = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))];
  return [
    { key: "run", title: t("Run"), width: "minmax(160px, 1fr)", sortValue: (row) => row.run, cell: (row) => row.run },
    ...parameterNames.map((name) => valueColumn(`hparam ${name}`, name, (row) => row.values[name])),
    ...metricNames.map((name) => valueColumn(`metric ${name}`, name, (row) => row.metrics[name])),
  ];
}

function valueColumn(
  key: string,
  title: string,
  readValue: (row: HyperparameterRun) => unknown,
): TableColumn<HyperparameterRun> {
  const sortValue = (row: HyperparameterRun): number | string => {
    const value = readValue(row);
    return typeof value === "number" ? value : toPlainText(value);
  };
  const cell = (row: HyperparameterRun): string => {
    const value = sortValue(row);
    return typeof value === "number" ? formatNumber(value, 5) : value;
  };
  return { key, title, width: "minmax(110px, 1fr)", sortValue, cell };
}
