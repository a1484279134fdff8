// The columns of the list of jobs. Their keys are the names of the API's fields.

import type { ReactNode } from "react";
import type { JobRow } from "../api";
import { SafeLink } from "../components/SafeLink";
import { StateTag } from "../components/StateTag";
import type { TableColumn } from "../components/VirtualTable";
import { formatAmount, formatDateTime, formatDuration, formatElapsed, formatPercent } from "../format";
import { t } from "../language";
import { href } from "../router";
import { causeName } from "./causeNames";
import type { RunColumn } from "./runColumns";
import { SelectionBox } from "./selection";

/** Is wider than any window: the column is shown only where it is chosen. */
const ON_CHOICE = Number.MAX_SAFE_INTEGER;
/** Columns that no list is sorted by. */
export const UNSORTABLE = ["cluster", "tags", "note", "archived", "diagnostics"];

export function jobColumns(withClusters: boolean, withCost: boolean, more: RunColumn[]): TableColumn<JobRow>[] {
  return [
    {
      key: "name",
      title: t("Job"),
      width: "minmax(170px, 2fr)",
      tooltip: (row) => `${row.name} ${row.id}`,
      cell: (row) => <NameCell row={row} />,
    },
    {
      key: "state",
      title: t("State"),
      width: "150px",
      tooltip: (row) => row.diagnostics,
      cell: (row) => (
        <StateTag
          state={row.state}
          text={row.state === "RUNNING" && row.progress ? `${t("RUNNING")} ${formatPercent(row.progress)}` : undefined}
        />
      ),
    },
    textColumn("id", t("ID"), "265px", 1200),
    textColumn("user", t("User"), "minmax(80px, 0.7fr)"),
    textColumn("queue", t("Queue"), "minmax(80px, 0.7fr)", 700),
    textColumn("engine", t("Engine"), "100px", 1600),
    textColumn("cluster", t("Cluster"), "minmax(80px, 0.6fr)", withClusters ? 0 : ON_CHOICE),
    textColumn("framework", t("Framework"), "110px", 1800),
    { key: "started", title: t("Started"), width: "165px", cell: (row) => formatDateTime(row.started) },
    {
      key: "finished",
      title: t("Finished"),
      width: "165px",
      minWindowWidth: ON_CHOICE,
      cell: (row) => formatDateTime(row.finished),
    },
    {
      key: "duration_s",
      title: t("Duration"),
      width: "95px",
      alignEnd: true,
      cell: (row) => (row.duration_s ? formatDuration(row.duration_s) : formatElapsed(row.started, row.finished)),
    },
    { ...numberColumn("tasks", t("Tasks"), (row) => row.tasks), width: "80px", minWindowWidth: 1800 },
    numberColumn("gpus", t("GPUs"), (row) => row.gpus),
    { ...numberColumn("gpu_hours", t("GPU hours"), (row) => row.gpu_hours), width: "100px", minWindowWidth: 900 },
    numberColumn("wasted_gpu_hours", t("Wasted GPU hours"), (row) => row.wasted_gpu_hours),
    numberColumn("cpu_hours", t("CPU hours"), (row) => row.cpu_hours),
    numberColumn("memory_gib_hours", t("Memory (GiB hours)"), (row) => row.memory_gib_hours),
    ...(withCost ? [numberColumn("cost", t("Cost"), (row) => row.cost ?? 0)] : []),
    {
      key: "tags",
      title: t("Tags"),
      width: "minmax(100px, 1fr)",
      minWindowWidth: 1000,
      tooltip: (row) => row.tags.join(", "),
      cell: (row) => row.tags.join(", "),
    },
    {
      key: "note",
      title: t("Note"),
      width: "minmax(120px, 2fr)",
      minWindowWidth: ON_CHOICE,
      tooltip: (row) => row.note,
      cell: (row) => row.note,
    },
    {
      key: "archived",
      title: t("Archived"),
      width: "110px",
      minWindowWidth: ON_CHOICE,
      cell: (row) => (row.archived ? t("yes") : ""),
    },
    {
      key: "diagnostics",
      title: t("Diagnostics"),
      width: "minmax(120px, 2fr)",
      minWindowWidth: 1700,
      cell: (row) => row.diagnostics || causeName(row.cause),
      tooltip: (row) => row.diagnostics,
    },
    ...more.map(runColumn),
  ];
}

function NameCell({ row }: { row: JobRow }): ReactNode {
  return (
    <>
      <SelectionBox job={row} />
      <a href={href(["jobs", row.id])}>{row.name || row.id}</a>
      {row.url && (
        <>
          {" "}
          <SafeLink url={row.url}>
            <span role="img" aria-label={t("live page")} title={t("live page")}>
              ↗
            </span>
          </SafeLink>
        </>
      )}
    </>
  );
}

function textColumn(
  key: "id" | "user" | "queue" | "engine" | "cluster" | "framework",
  title: string,
  width: string,
  minWindowWidth = 0,
): TableColumn<JobRow> {
  return { key, title, width, minWindowWidth, cell: (row) => row[key], tooltip: (row) => row[key] };
}

function numberColumn(key: string, title: string, value: (row: JobRow) => number): TableColumn<JobRow> {
  const cell = (row: JobRow): string => (value(row) ? formatAmount(value(row)) : "");
  return { key, title, width: "170px", alignEnd: true, minWindowWidth: ON_CHOICE, cell };
}

function runColumn({ key, title, numeric, value }: RunColumn): TableColumn<JobRow> {
  return { key, title, width: "190px", alignEnd: numeric, minWindowWidth: ON_CHOICE, cell: value, tooltip: value };
}
