// The list of jobs, by page. The server filters and sorts, so that a hundred thousand jobs are as fast as ten.

import { Button, Segmented } from "antd";
import { lazy, type ReactNode, Suspense, useMemo } from "react";
import type { ApiResponse, JobRow, QueryParams } from "../api";
import { apiUrl } from "../apiClient";
import { ColumnPicker, useVisibleColumns } from "../components/ColumnPicker";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { type Sorting, type TableColumn, VirtualTable } from "../components/VirtualTable";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { useLatestData, usePolling } from "../usePolling";
import { jobColumns, UNSORTABLE } from "./jobColumns";
import { FILTER_NAMES, JobFilters, dateToEpochSeconds } from "./JobFilters";
import { fixedNumberColumns, type RunColumn, runColumns } from "./runColumns";
import { CompareButton } from "./selection";

const RunCharts = lazy(() => import("./RunCharts"));

const JOBS_PER_PAGE = 50;
/** The most jobs in one answer, and so in the list as JSON. */
const MAX_JOBS = 500;
const NO_NAMES = { metrics: [], params: [] };

export default function JobListPage(): ReactNode {
  const { query } = useRoute();
  const cursors = (query.get("pages") ?? "").split("~").filter(Boolean);
  const params = listParams(query);
  const polled = usePolling("jobs", {}, { ...params, limit: JOBS_PER_PAGE, after: cursors.at(-1) ?? "" }, 10);
  const response = useLatestData(polled);
  const [columns, axes] = useColumns(response);
  const view = query.get("view");
  const chart = view === "parallel" || view === "scatter" ? view : undefined;
  const visible = useVisibleColumns(columns);
  const sort = params.sort as string;
  const sorting: Sorting = { key: sort.replace(/^-/, ""), descending: sort.startsWith("-") };
  const setSorting = ({ key, descending }: Sorting): void =>
    updateQuery({ sort: (descending ? "-" : "") + key, pages: "" }, true);
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
      <div className="row" style={{ marginBottom: 8 }}>
        <CompareButton />
        <ViewSelect view={chart ?? ""} />
        <span className="grow" />
        <ColumnPicker columns={columns} visible={visible} />
        <ListLinks params={params} columns={visible} />
      </div>
      {response && chart && (
        <Suspense fallback={<EmptyState text={t("Loading…")} />}>
          <RunCharts
            kind={chart}
            params={params}
            columns={axes.filter(({ key }) => visible.some((column) => column.key === key))}
          />
        </Suspense>
      )}
      {!response && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {response && !chart && (
        <div aria-busy={!polled.data}>
          <VirtualTable
            key={JSON.stringify([params, cursors])}
            label={t("Jobs")}
            columns={visible}
            rows={response.jobs}
            rowKey={(row) => `${row.cluster} ${row.id}`}
            sorting={sorting}
            onSort={setSorting}
            sortable={visible.map(({ key }) => key).filter((key) => !UNSORTABLE.includes(key))}
            height="max(320px, calc(100vh - 230px))"
          />
          <PageButtons response={response} cursors={cursors} loading={!polled.data} />
        </div>
      )}
    </>
  );
}

/** Returns the filters, the order and the columns of the address as the server takes them. */
function listParams(query: URLSearchParams): QueryParams<"jobs"> {
  const params: QueryParams<"jobs"> = {
    sort: (query.get("sort") ?? "-started").replace(/^(-?)duration$/, "$1duration_s"),
    columns: query.get("columns") ?? "",
  };
  for (const name of FILTER_NAMES) params[name] = query.get(name) ?? "";
  for (const name of ["from", "to"] as const) params[name] = dateToEpochSeconds(query.get(name), name === "to");
  return params;
}

/** Returns all columns of the table, and those of them that can be axes of a chart. */
function useColumns(response: ApiResponse<"jobs"> | undefined): [TableColumn<JobRow>[], RunColumn[]] {
  const chosen = useRoute().query.get("columns") ?? "";
  const withClusters = response?.jobs.some((row) => row.cluster) ?? false;
  const withCost = response?.jobs.some((row) => row.cost !== null) ?? false;
  const names = response?.names ?? NO_NAMES;
  return useMemo(() => {
    const more = runColumns(names, chosen);
    return [jobColumns(withClusters, withCost, more), [...more, ...fixedNumberColumns()]];
  }, [withClusters, withCost, names, chosen]);
}

function ViewSelect({ view }: { view: string }): ReactNode {
  return (
    <Segmented
      aria-label={t("View")}
      value={view}
      options={[
        { value: "", label: t("Table") },
        { value: "parallel", label: t("Parallel coordinates") },
        { value: "scatter", label: t("Scatter plot") },
      ]}
      onChange={(value) => updateQuery({ view: value }, true)}
    />
  );
}

/** Links to what is seen, of all pages, as files. */
function ListLinks({ params, columns }: { params: QueryParams<"jobs">; columns: TableColumn<JobRow>[] }): ReactNode {
  const keys = columns.map(({ key }) => key).join(",");
  return (
    <>
      <a href={apiUrl("jobs.csv", {}, { ...params, columns: keys })} download>
        CSV
      </a>
      <a href={apiUrl("jobs", {}, { ...params, limit: MAX_JOBS })} target="_blank" rel="noopener">
        JSON
      </a>
    </>
  );
}

interface PageButtonsProps {
  response: ApiResponse<"jobs">;
  cursors: string[];
  /** The answer is that of another page, until this one's has come. */
  loading: boolean;
}

function PageButtons({ response, cursors, loading }: PageButtonsProps): ReactNode {
  const { next, jobs, total } = response;
  const first = cursors.length * JOBS_PER_PAGE;
  const open = (pages: string[]): void => updateQuery({ pages: pages.join("~") }, true);
  return (
    <div className="row" style={{ marginTop: 8 }}>
      <span className="muted" role="status">
        {loading
          ? t("Loading…")
          : total === 0
          ? t("No matching jobs.")
          : t("{from}–{to} of {total} jobs", { from: first + 1, to: first + jobs.length, total })}
      </span>
      <span className="grow" />
      <Button disabled={loading || !cursors.length} onClick={() => open(cursors.slice(0, -1))}>
        {t("Previous")}
      </Button>
      <Button disabled={loading || !next} onClick={() => next && open([...cursors, next])}>
        {t("Next")}
      </Button>
    </div>
  );
}
