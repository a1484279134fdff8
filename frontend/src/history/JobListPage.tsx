// The list of jobs, by page. The server filters and sorts, so that a hundred thousand jobs are as fast as ten.

import { Button } from "antd";
import { type ReactNode, useMemo } from "react";
import type { JobRow, QueryParams } from "../api";
import { EmptyState } from "../components/EmptyState";
import { SafeLink } from "../components/SafeLink";
import { StaleNotice } from "../components/StaleNotice";
import { StateTag } from "../components/StateTag";
import { type TableColumn, VirtualTable, type Sorting } from "../components/VirtualTable";
import { formatElapsed, formatDuration, formatNumber, formatPercent, formatTime } from "../format";
import { t } from "../language";
import { updateQuery, href, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { FILTER_NAMES, JobFilters, dateToEpochSeconds } from "./JobFilters";

const JOBS_PER_PAGE = 50;
const SORTABLE_COLUMNS = ["started", "name", "duration", "gpu_hours"];

export default function JobListPage(): ReactNode {
  const { query } = useRoute();
  const sort = query.get("sort") ?? "-started";
  const cursors = (query.get("pages") ?? "").split("~").filter(Boolean);
  const params: QueryParams<"jobs"> = { sort, limit: JOBS_PER_PAGE, after: cursors.at(-1) ?? "" };
  for (const name of FILTER_NAMES) params[name] = query.get(name) ?? "";
  for (const name of ["from", "to"] as const) params[name] = dateToEpochSeconds(query.get(name), name === "to");
  const polled = usePolling("jobs", {}, params, 10);
  const response = polled.data;
  const withClusters = response?.jobs.some((row) => row.cluster) ?? false;
  const columns = useMemo(() => jobColumns(withClusters), [withClusters]);
  const sorting: Sorting = { key: sort.replace(/^-/, ""), descending: sort.startsWith("-") };
  const setSorting = ({ key, descending }: Sorting): void =>
    updateQuery({ sort: (descending ? "-" : "") + key, pages: "" });
  const next = response?.next;
  return (
    <>
      <StaleNotice polled={polled} />
      <h1 className="visually-hidden">{t("Jobs")}</h1>
      {(response?.problems ?? []).map((text) => (
        <p key={text} className="notice" role="status">
          {text}
        </p>
      ))}
      <JobFilters />
      {!response && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {response && (
        <VirtualTable
          label={t("Jobs")}
          columns={columns}
          rows={response.jobs}
          rowKey={(row) => `${row.cluster} ${row.id}`}
          sorting={sorting}
          onSort={setSorting}
          sortable={SORTABLE_COLUMNS}
          height="calc(100vh - 190px)"
        />
      )}
      {response && (
        <div className="row" style={{ marginTop: 8 }}>
          <span className="muted" role="status">
            {response.total === 0
              ? t("No matching jobs.")
              : t("{from}–{to} of {total} jobs", {
                  from: cursors.length * JOBS_PER_PAGE + 1,
                  to: cursors.length * JOBS_PER_PAGE + response.jobs.length,
                  total: response.total,
                })}
          </span>
          <span className="grow" />
          <Button disabled={!cursors.length} onClick={() => updateQuery({ pages: cursors.slice(0, -1).join("~") })}>
            {t("Previous")}
          </Button>
          <Button disabled={!next} onClick={() => updateQuery({ pages: [...cursors, next].join("~") })}>
            {t("Next")}
          </Button>
        </div>
      )}
    </>
  );
}

function jobColumns(withClusters: boolean): TableColumn<JobRow>[] {
  return [
    {
      key: "name",
      title: t("Job"),
      width: "minmax(200px, 2fr)",
      tooltip: (row) => `${row.name} ${row.id}`,
      cell: (row) => (
        <>
          <a href={href(["jobs", row.id])}>{row.name || row.id}</a>
          {row.url && (
            <>
              {" "}
              <SafeLink url={row.url}>({t("live page")})</SafeLink>
            </>
          )}
        </>
      ),
    },
    {
      key: "state",
      title: t("State"),
      width: "165px",
      cell: (row) => (
        <StateTag
          state={row.state}
          text={row.state === "RUNNING" && row.progress ? `${t("RUNNING")} ${formatPercent(row.progress)}` : undefined}
        />
      ),
    },
    {
      key: "user",
      title: t("User"),
      width: "minmax(80px, 0.7fr)",
      cell: (row) => row.user,
      tooltip: (row) => row.user,
    },
    {
      key: "queue",
      title: t("Queue"),
      width: "minmax(80px, 0.7fr)",
      cell: (row) => row.queue,
      tooltip: (row) => row.queue,
    },
    { key: "engine", title: t("Engine"), width: "100px", cell: (row) => row.engine },
    ...(withClusters ? [clusterColumn()] : []),
    { key: "framework", title: t("Framework"), width: "110px", cell: (row) => row.framework },
    { key: "started", title: t("Started"), width: "165px", cell: (row) => formatTime(row.started) },
    {
      key: "duration",
      title: t("Duration"),
      width: "100px",
      alignEnd: true,
      cell: (row) => (row.duration_s ? formatDuration(row.duration_s) : formatElapsed(row.started, row.finished)),
    },
    { key: "tasks", title: t("Tasks"), width: "70px", alignEnd: true, cell: (row) => row.tasks },
    {
      key: "gpu_hours",
      title: t("GPU hours"),
      width: "100px",
      alignEnd: true,
      cell: (row) => (row.gpu_hours ? formatNumber(row.gpu_hours) : ""),
    },
    {
      key: "cause",
      title: t("Diagnostics"),
      width: "minmax(120px, 2fr)",
      cell: (row) => row.diagnostics || row.cause,
      tooltip: (row) => row.diagnostics,
    },
  ];
}

/** Returns the column of profiles, which is shown where a job's cluster has a name. */
function clusterColumn(): TableColumn<JobRow> {
  return {
    key: "cluster",
    title: t("Cluster"),
    width: "minmax(80px, 0.6fr)",
    cell: (row) => row.cluster,
    tooltip: (row) => row.cluster,
  };
}
