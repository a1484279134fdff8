// How many GPU hours each user used and wasted.

import { type ReactNode, useMemo } from "react";
import type { UserUsage } from "../api";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { formatNumber, formatPercent } from "../format";
import { t } from "../language";
import { updateQuery, href, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { DateRangeFilter, dateToEpochSeconds } from "./JobFilters";

export default function UsersPage(): ReactNode {
  const { query } = useRoute();
  const params = { from: dateToEpochSeconds(query.get("from"), false), to: dateToEpochSeconds(query.get("to"), true) };
  const polled = usePolling("users", {}, params, 30);
  const columns = useMemo(() => userColumns(), []);
  const rows = polled.data?.users;
  return (
    <>
      <h1 className="visually-hidden">{t("Users")}</h1>
      <StaleNotice polled={polled} />
      <div className="row" style={{ marginBottom: 8 }}>
        <DateRangeFilter onChange={(name, value) => updateQuery({ [name]: value })} />
      </div>
      {!rows && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {rows && (
        <VirtualTable
          label={t("Users")}
          columns={columns}
          rows={rows}
          rowKey={(row) => row.user}
          height="calc(100vh - 150px)"
        />
      )}
    </>
  );
}

function userColumns(): TableColumn<UserUsage>[] {
  return [
    {
      key: "user",
      title: t("User"),
      width: "minmax(140px, 1fr)",
      sortValue: (row) => row.user,
      cell: (row) => <a href={href(["jobs"], { user: row.user })}>{row.user}</a>,
    },
    {
      key: "jobs",
      title: t("Jobs"),
      width: "100px",
      alignEnd: true,
      sortValue: (row) => row.jobs,
      cell: (row) => row.jobs,
    },
    {
      key: "gpu_hours",
      title: t("GPU hours"),
      width: "120px",
      alignEnd: true,
      sortValue: (row) => row.gpu_hours,
      cell: (row) => formatNumber(row.gpu_hours),
    },
    {
      key: "wasted",
      title: t("Wasted GPU hours"),
      width: "150px",
      alignEnd: true,
      sortValue: (row) => row.wasted_gpu_hours,
      cell: (row) => formatNumber(row.wasted_gpu_hours),
    },
    {
      key: "share",
      title: t("Wasted share"),
      width: "100px",
      alignEnd: true,
      sortValue: (row) => (row.gpu_hours ? row.wasted_gpu_hours / row.gpu_hours : 0),
      cell: (row) => (row.gpu_hours ? formatPercent(row.wasted_gpu_hours / row.gpu_hours) : ""),
    },
    {
      key: "cause",
      title: t("By cause (GPU hours)"),
      width: "minmax(240px, 3fr)",
      cell: (row) => describeCauses(row),
      tooltip: (row) => describeCauses(row),
    },
  ];
}

function describeCauses(row: UserUsage): string {
  const all = Object.entries(row.by_cause).sort((a, b) => b[1] - a[1]);
  return all.map(([cause, hours]) => `${cause} ${formatNumber(hours)}`).join(", ");
}
