// Who used how much, and how much of it came to nothing.

import { type ReactNode, useMemo } from "react";
import type { UserRow } from "../api";
import { number, percent } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { amend, href, useRoute } from "../route";
import { type Column, Grid } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { Days, seconds } from "./Filters";

export default function Users(): ReactNode {
  const { query } = useRoute();
  const asked = { from: seconds(query.get("from"), false), to: seconds(query.get("to"), true) };
  const polled = usePolled("users", {}, asked, 30);
  const columns = useMemo(() => columnsOf(), []);
  const rows = polled.data?.users;
  return (
    <>
      <h1 className="title">{say("Users")}</h1>
      <Stale polled={polled} />
      <div className="row" style={{ marginBottom: 8 }}>
        <Days onChange={(name, value) => amend({ [name]: value })} />
      </div>
      {!rows && <Nothing text={polled.error ? polled.error.message : say("Loading…")} />}
      {rows && (
        <Grid
          label={say("Users")}
          columns={columns}
          rows={rows}
          rowKey={(row) => row.user}
          height="calc(100vh - 150px)"
        />
      )}
    </>
  );
}

function columnsOf(): Column<UserRow>[] {
  return [
    {
      key: "user",
      title: say("User"),
      width: "minmax(140px, 1fr)",
      by: (row) => row.user,
      cell: (row) => <a href={href(["jobs"], { user: row.user })}>{row.user}</a>,
    },
    { key: "jobs", title: say("Jobs"), width: "100px", end: true, by: (row) => row.jobs, cell: (row) => row.jobs },
    {
      key: "gpu_hours",
      title: say("GPU hours"),
      width: "120px",
      end: true,
      by: (row) => row.gpu_hours,
      cell: (row) => number(row.gpu_hours),
    },
    {
      key: "wasted",
      title: say("Wasted GPU hours"),
      width: "150px",
      end: true,
      by: (row) => row.wasted_gpu_hours,
      cell: (row) => number(row.wasted_gpu_hours),
    },
    {
      key: "share",
      title: say("Wasted"),
      width: "100px",
      end: true,
      by: (row) => (row.gpu_hours ? row.wasted_gpu_hours / row.gpu_hours : 0),
      cell: (row) => (row.gpu_hours ? percent(row.wasted_gpu_hours / row.gpu_hours) : ""),
    },
    {
      key: "cause",
      title: say("By cause (GPU hours)"),
      width: "minmax(240px, 3fr)",
      cell: (row) => causes(row),
      hint: (row) => causes(row),
    },
  ];
}

function causes(row: UserRow): string {
  const all = Object.entries(row.by_cause).sort((a, b) => b[1] - a[1]);
  return all.map(([cause, hours]) => `${cause} ${number(hours)}`).join(", ");
}
