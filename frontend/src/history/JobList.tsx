// All jobs, by page: filtered and sorted by the server, so that a hundred thousand of them are as quick as ten.

import { Button } from "antd";
import { type ReactNode, useMemo } from "react";
import type { JobRow, QueryOf } from "../api";
import { between, duration, number, percent, time } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { retold } from "../retold";
import { amend, href, useRoute } from "../route";
import { type Column, Grid, type Sorting } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";
import { SafeLink } from "../shell/SafeLink";
import { Stale } from "../shell/Stale";
import { StateTag } from "../shell/StateTag";
import { FILTERS, Filters, seconds } from "./Filters";

const PAGE = 50;
const SORTABLE = ["started", "name", "duration", "gpu_hours"];

export default function JobList(): ReactNode {
  const { query } = useRoute();
  const sort = query.get("sort") ?? "-started";
  const cursors = (query.get("pages") ?? "").split("~").filter(Boolean);
  const asked: QueryOf<"jobs"> = { sort, limit: PAGE, after: cursors.at(-1) ?? "" };
  for (const name of FILTERS) asked[name] = query.get(name) ?? "";
  for (const name of ["from", "to"] as const) asked[name] = seconds(query.get(name), name === "to");
  const polled = usePolled("jobs", {}, asked, 10);
  const columns = useMemo(() => columnsOf(), []);
  const found = polled.data;
  const sorting: Sorting = { key: sort.replace(/^-/, ""), down: sort.startsWith("-") };
  const order = ({ key, down }: Sorting): void => amend({ sort: (down ? "-" : "") + key, pages: "" });
  const next = found?.next;
  return (
    <>
      <Stale polled={polled} />
      <h1 className="title">{say("Jobs")}</h1>
      {(found?.problems ?? []).map((text) => (
        <p key={retold(text)} className="stale" role="status">
          {retold(text)}
        </p>
      ))}
      <Filters />
      {!found && <Nothing text={polled.error ? polled.error.message : say("Loading…")} />}
      {found && (
        <Grid
          label={say("Jobs")}
          columns={columns}
          rows={found.jobs}
          rowKey={(row) => row.id}
          sorting={sorting}
          onSort={order}
          sortable={SORTABLE}
          height="calc(100vh - 190px)"
        />
      )}
      {found && (
        <div className="row" style={{ marginTop: 8 }}>
          <span className="muted" role="status">
            {found.total === 0
              ? say("No job fits.")
              : say("{from}–{to} of {total} jobs", {
                  from: cursors.length * PAGE + 1,
                  to: cursors.length * PAGE + found.jobs.length,
                  total: found.total,
                })}
          </span>
          <span className="grow" />
          <Button disabled={!cursors.length} onClick={() => amend({ pages: cursors.slice(0, -1).join("~") })}>
            {say("Back")}
          </Button>
          <Button disabled={!next} onClick={() => amend({ pages: [...cursors, next].join("~") })}>
            {say("Next")}
          </Button>
        </div>
      )}
    </>
  );
}

function columnsOf(): Column<JobRow>[] {
  return [
    {
      key: "name",
      title: say("Job"),
      width: "minmax(200px, 2fr)",
      hint: (row) => `${row.name} ${row.id}`,
      cell: (row) => (
        <>
          <a href={href(["jobs", row.id])}>{row.name || row.id}</a>
          {row.url && (
            <>
              {" "}
              <SafeLink url={row.url}>({say("live page")})</SafeLink>
            </>
          )}
        </>
      ),
    },
    {
      key: "state",
      title: say("State"),
      width: "165px",
      cell: (row) => (
        <StateTag
          state={row.state}
          text={row.state === "RUNNING" && row.progress ? `${say("RUNNING")} ${percent(row.progress)}` : undefined}
        />
      ),
    },
    { key: "user", title: say("User"), width: "minmax(80px, 0.7fr)", cell: (row) => row.user, hint: (row) => row.user },
    {
      key: "queue",
      title: say("Queue"),
      width: "minmax(80px, 0.7fr)",
      cell: (row) => row.queue,
      hint: (row) => row.queue,
    },
    { key: "framework", title: say("Framework"), width: "110px", cell: (row) => row.framework },
    { key: "started", title: say("Started"), width: "165px", cell: (row) => time(row.started) },
    {
      key: "duration",
      title: say("Duration"),
      width: "100px",
      end: true,
      cell: (row) => (row.duration_s ? duration(row.duration_s) : between(row.started, row.finished)),
    },
    { key: "tasks", title: say("Tasks"), width: "70px", end: true, cell: (row) => row.tasks },
    {
      key: "gpu_hours",
      title: say("GPU hours"),
      width: "100px",
      end: true,
      cell: (row) => (row.gpu_hours ? number(row.gpu_hours) : ""),
    },
    {
      key: "cause",
      title: say("Diagnostics"),
      width: "minmax(120px, 2fr)",
      cell: (row) => retold(row.diagnostics) || row.cause,
      hint: (row) => retold(row.diagnostics),
    },
  ];
}
