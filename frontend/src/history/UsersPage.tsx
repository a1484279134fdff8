// What jobs used and wasted: GPU-, CPU- and memory-hours by user, queue, tag or day.

import { Select } from "antd";
import { lazy, type ReactNode, Suspense, useMemo } from "react";
import type { ApiResponse, QueryParams, UserUsage } from "../api";
import { apiUrl } from "../apiClient";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { formatAmount, formatMoney, formatPercent } from "../format";
import { t } from "../language";
import { updateQuery, href, useRoute } from "../router";
import { useLatestData, usePolling } from "../usePolling";
import { causeName } from "./causeNames";
import { DateRangeFilter, dateToEpochSeconds } from "./JobFilters";

const UsageChart = lazy(() => import("./UsageChart"));

/** What stands above the table, and with a chart between. */
const ABOVE_PX = { table: 190, chart: 430 };

type Group = ApiResponse<"users">["by"];

export default function UsersPage(): ReactNode {
  const { query } = useRoute();
  const params: QueryParams<"users"> = {
    by: query.get("by") ?? "user",
    from: dateToEpochSeconds(query.get("from"), false),
    to: dateToEpochSeconds(query.get("to"), true),
  };
  const polled = usePolling("users", {}, params, 30);
  const answer = useLatestData(polled);
  const by = answer?.by ?? "user";
  const currency = answer?.currency ?? "";
  // One day alone is a row of the table; jobs that have not started have no day.
  const hasChart = by === "day" && (answer?.users.filter(({ group }) => group).length ?? 0) > 1;
  const columns = useMemo(() => usageColumns(by, currency), [by, currency]);
  return (
    <>
      <h1 className="visually-hidden">{t("Users")}</h1>
      <StaleNotice polled={polled} />
      <div className="row" style={{ marginBottom: 8 }}>
        <GroupSelect by={query.get("by") ?? "user"} />
        <DateRangeFilter onChange={(name, value) => updateQuery({ [name]: value }, true)} />
        <span className="grow" />
        <a href={apiUrl("users.csv", {}, params)} download>
          CSV
        </a>
      </div>
      {!answer && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {answer && (
        <>
          <Total total={answer.total} currency={currency} />
          {hasChart && (
            <Suspense fallback={<EmptyState text={t("Loading…")} />}>
              <UsageChart rows={answer.users} />
            </Suspense>
          )}
          <VirtualTable
            label={t("Users")}
            columns={columns}
            rows={answer.users}
            rowKey={(row) => row.group}
            height={`max(320px, calc(100vh - ${hasChart ? ABOVE_PX.chart : ABOVE_PX.table}px))`}
          />
        </>
      )}
    </>
  );
}

function GroupSelect({ by }: { by: string }): ReactNode {
  const groups: { value: Group; label: string }[] = [
    { value: "user", label: t("By user") },
    { value: "queue", label: t("By queue") },
    { value: "tag", label: t("By tag") },
    { value: "day", label: t("By day") },
  ];
  return (
    <Select
      aria-label={t("Group")}
      value={by}
      options={groups}
      onChange={(value) => updateQuery({ by: value === "user" ? "" : value }, true)}
      style={{ minWidth: 120 }}
    />
  );
}

function Total({ total, currency }: { total: UserUsage; currency: string }): ReactNode {
  return (
    <p role="status" style={{ margin: "0 0 8px" }}>
      {t("{jobs} jobs: {gpu} GPU hours, {wasted} of them wasted, {cpu} CPU hours, {memory} GiB hours of memory", {
        jobs: total.jobs,
        gpu: formatAmount(total.gpu_hours),
        wasted: formatAmount(total.wasted_gpu_hours),
        cpu: formatAmount(total.cpu_hours),
        memory: formatAmount(total.memory_gib_hours),
      })}
      {total.cost !== null && ` · ${t("Cost")}: ${formatMoney(total.cost)} ${currency}`}
    </p>
  );
}

function usageColumns(by: Group, currency: string): TableColumn<UserUsage>[] {
  const titles: Record<Group, string> = { user: t("User"), queue: t("Queue"), tag: t("Tag"), day: t("Day") };
  return [
    {
      key: "group",
      title: titles[by],
      width: "minmax(140px, 1fr)",
      sortValue: (row) => row.group,
      tooltip: (row) => row.group,
      cell: (row) => <GroupCell by={by} group={row.group} />,
    },
    numberColumn("jobs", t("Jobs"), 90, (row) => row.jobs),
    numberColumn("gpu_hours", t("GPU hours"), 110, (row) => row.gpu_hours),
    numberColumn("wasted", t("Wasted GPU hours"), 180, (row) => row.wasted_gpu_hours),
    {
      ...numberColumn("share", t("Wasted share"), 140, (row) => wastedShare(row)),
      cell: (row) => (row.gpu_hours ? formatPercent(wastedShare(row)) : ""),
    },
    numberColumn("cpu_hours", t("CPU hours"), 110, (row) => row.cpu_hours),
    numberColumn("memory", t("Memory (GiB hours)"), 190, (row) => row.memory_gib_hours),
    ...(currency ? [numberColumn("cost", t("Cost ({currency})", { currency }), 130, (row) => row.cost ?? 0)] : []),
    {
      key: "cause",
      title: t("By cause (GPU hours)"),
      width: "minmax(240px, 3fr)",
      cell: (row) => describeCauses(row),
      tooltip: (row) => describeCauses(row),
    },
  ];
}

/** Links to the jobs of a group, of the same days. */
function GroupCell({ by, group }: { by: Group; group: string }): ReactNode {
  const { query } = useRoute();
  if (!group) return <span className="muted">{t("none")}</span>;
  const days = { from: query.get("from") ?? "", to: query.get("to") ?? "" };
  const filter = by === "day" ? { from: group, to: group } : { ...days, [by]: group };
  return <a href={href(["jobs"], filter)}>{group}</a>;
}

function numberColumn(
  key: string,
  title: string,
  width: number,
  value: (row: UserUsage) => number,
): TableColumn<UserUsage> {
  const cell = (row: UserUsage): string => formatAmount(value(row));
  return { key, title, width: `${width}px`, alignEnd: true, sortValue: value, cell };
}

function wastedShare(row: UserUsage): number {
  return row.gpu_hours ? row.wasted_gpu_hours / row.gpu_hours : 0;
}

function describeCauses(row: UserUsage): string {
  const all = Object.entries(row.by_cause).sort((a, b) => b[1] - a[1]);
  return all.map(([cause, hours]) => `${causeName(cause)} ${formatAmount(hours)}`).join(", ");
}
