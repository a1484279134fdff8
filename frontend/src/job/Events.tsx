// Everything that is known of the job, as it was written down.

import { Input } from "antd";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { Job } from "../api";
import { get } from "../client";
import { plain, time } from "../format";
import { say } from "../language";
import { amend, useRoute } from "../route";
import { type Column, Grid } from "../shell/Grid";
import { hasEnded } from "./jobState";

interface Row {
  number: number;
  time: number;
  kind: string;
  task: string;
  rest: string;
}

const PAGE = 1000;
const MOST = 100_000;

export default function Events({ job }: { job: Job }): ReactNode {
  const { rows, error } = useEvents(job.id, !hasEnded(job));
  const sought = useRoute().query.get("text") ?? "";
  const shown = useMemo(() => {
    const words = sought.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => {
      const text = `${row.kind} ${row.task} ${row.rest}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return found.reverse();
  }, [rows, sought]);
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={say("Search events")}
          placeholder={say("Kind, task, text")}
          defaultValue={sought}
          onChange={(event) => amend({ text: event.target.value })}
          style={{ width: 260 }}
        />
        <span className="muted" role="status">
          {say("{shown} of {all} events, the newest first", { shown: shown.length, all: rows.length })}
        </span>
        {error && <span className="bad">{error}</span>}
      </div>
      <Grid label={say("Events")} columns={columns()} rows={shown} rowKey={(row) => `${row.number}`} />
    </>
  );
}

function columns(): Column<Row>[] {
  return [
    {
      key: "number",
      title: say("Number"),
      width: "80px",
      end: true,
      by: (row) => row.number,
      cell: (row) => row.number,
    },
    { key: "time", title: say("Time"), width: "165px", by: (row) => row.time, cell: (row) => time(row.time) },
    { key: "kind", title: say("Kind"), width: "150px", by: (row) => row.kind, cell: (row) => row.kind },
    { key: "task", title: say("Task"), width: "120px", by: (row) => row.task, cell: (row) => row.task },
    {
      key: "rest",
      title: say("What"),
      width: "minmax(200px, 1fr)",
      cell: (row) => <span className="mono">{row.rest}</span>,
      hint: (row) => row.rest.slice(0, 2000),
    },
  ];
}

/** All events so far, then those that come. */
function useEvents(job: string, live: boolean): { rows: Row[]; error: string } {
  const [rows, setRows] = useState<Row[]>([]);
  const [error, setError] = useState("");
  useEffect(() => {
    const ended = new AbortController();
    let next = 0;
    let timer = 0;
    const ask = async (): Promise<void> => {
      let wait = 2000;
      try {
        if (!document.hidden) {
          const found = await get("jobs/{job}/events", { job }, { since: next, limit: PAGE }, ended.signal);
          const from = found.next - found.events.length;
          next = found.next;
          if (found.events.length) {
            wait = 0;
            setRows((last) =>
              [...last, ...found.events.map((event, index) => rowOf(event, from + index))].slice(-MOST),
            );
          } else if (!live) return;
        }
        setError("");
      } catch (problem) {
        if (ended.signal.aborted) return;
        setError((problem as Error).message);
      }
      timer = window.setTimeout(ask, wait);
    };
    setRows([]);
    void ask();
    return () => {
      ended.abort();
      window.clearTimeout(timer);
    };
  }, [job, live]);
  return { rows, error };
}

/** A task as the event log has it, or as people write it. */
function named(task: unknown): string {
  const { role, index } = (task ?? {}) as { role?: string; index?: number };
  return role === undefined ? plain(task) : `${role}:${index ?? 0}`;
}

function rowOf(event: Record<string, unknown>, number: number): Row {
  const { time: when, kind, event: name, task, ...rest } = event;
  return { number, time: Number(when), kind: plain(kind ?? name), task: named(task), rest: plain(rest) };
}
