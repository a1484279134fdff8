import { type ReactNode, useMemo } from "react";
import type { Session } from "../api";
import { number, plain } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { type Column, Grid } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";

/** A row for each run: what it was given, and what came of it. */
export default function HyperParameters({ job, seconds }: { job: string; seconds: number }): ReactNode {
  const polled = usePolled("jobs/{job}/curves/hparams", { job }, {}, seconds);
  const rows = polled.data?.runs;
  const columns = useMemo(() => columnsOf(rows ?? []), [rows]);
  if (!rows) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  if (!rows.length) return <Nothing text={say("No hyperparameters yet.")} />;
  return <Grid label={say("Hyperparameters")} columns={columns} rows={rows} rowKey={(row) => row.run} />;
}

function columnsOf(rows: Session[]): Column<Session>[] {
  const given = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const came = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))];
  return [
    { key: "run", title: say("Run"), width: "minmax(160px, 1fr)", by: (row) => row.run, cell: (row) => row.run },
    ...given.map((name) => column(`hparam ${name}`, name, (row) => row.values[name])),
    ...came.map((name) => column(`metric ${name}`, name, (row) => row.metrics[name])),
  ];
}

function column(key: string, title: string, of: (row: Session) => unknown): Column<Session> {
  const by = (row: Session): number | string => {
    const value = of(row);
    return typeof value === "number" ? value : plain(value);
  };
  const cell = (row: Session): string => {
    const value = by(row);
    return typeof value === "number" ? number(value, 5) : value;
  };
  return { key, title, width: "minmax(110px, 1fr)", by, cell };
}
