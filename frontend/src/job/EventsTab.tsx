// The job's event log, newest event first.

import { Input } from "antd";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { Job } from "../api";
import { apiGet } from "../apiClient";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { toPlainText, formatTime } from "../format";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { hasEnded } from "./jobState";

interface EventRow {
  number: number;
  time: number;
  kind: string;
  task: string;
  details: string;
}

const EVENTS_PER_REQUEST = 1000;
const MAX_EVENTS = 100_000;

export default function EventsTab({ job }: { job: Job }): ReactNode {
  const { rows, error } = useEvents(job.id, !hasEnded(job));
  const search = useRoute().query.get("text") ?? "";
  const visibleEvents = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = rows.filter((row) => {
      const text = `${row.kind} ${row.task} ${row.details}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return matching.reverse();
  }, [rows, search]);
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={t("Search events")}
          placeholder={t("Kind, task, text")}
          defaultValue={search}
          onChange={(event) => updateQuery({ text: event.target.value })}
          style={{ width: 260 }}
        />
        <span className="muted" role="status">
          {t("{shown} of {all} events, newest first", { shown: visibleEvents.length, all: rows.length })}
        </span>
        {error && <span className="bad">{error}</span>}
      </div>
      <VirtualTable
        label={t("Events")}
        columns={eventColumns()}
        rows={visibleEvents}
        rowKey={(row) => `${row.number}`}
      />
    </>
  );
}

function eventColumns(): TableColumn<EventRow>[] {
  return [
    {
      key: "number",
      title: t("Number"),
      width: "80px",
      alignEnd: true,
      sortValue: (row) => row.number,
      cell: (row) => row.number,
    },
    {
      key: "time",
      title: t("Time"),
      width: "165px",
      sortValue: (row) => row.time,
      cell: (row) => formatTime(row.time),
    },
    { key: "kind", title: t("Kind"), width: "150px", sortValue: (row) => row.kind, cell: (row) => row.kind },
    { key: "task", title: t("Task"), width: "120px", sortValue: (row) => row.task, cell: (row) => row.task },
    {
      key: "rest",
      title: t("Details"),
      width: "minmax(200px, 1fr)",
      cell: (row) => <span className="mono">{row.details}</span>,
      tooltip: (row) => row.details.slice(0, 2000),
    },
  ];
}

/** Loads all events so far, and then new ones as they come. */
function useEvents(job: string, live: boolean): { rows: EventRow[]; error: string } {
  const [rows, setRows] = useState<EventRow[]>([]);
  const [error, setError] = useState("");
  useEffect(() => {
    const stopped = new AbortController();
    let next = 0;
    let timer = 0;
    const request = async (): Promise<void> => {
      let waitMs = 2000;
      try {
        if (!document.hidden) {
          const response = await apiGet(
            "jobs/{job}/events",
            { job },
            { since: next, limit: EVENTS_PER_REQUEST },
            stopped.signal,
          );
          const firstNumber = response.next - response.events.length;
          next = response.next;
          if (response.events.length) {
            waitMs = 0;
            setRows((last) =>
              [...last, ...response.events.map((event, index) => toEventRow(event, firstNumber + index))].slice(
                -MAX_EVENTS,
              ),
            );
          } else if (!live) return;
        }
        setError("");
      } catch (problem) {
        if (stopped.signal.aborted) return;
        setError((problem as Error).message);
      }
      timer = window.setTimeout(request, waitMs);
    };
    setRows([]);
    void request();
    return () => {
      stopped.abort();
      window.clearTimeout(timer);
    };
  }, [job, live]);
  return { rows, error };
}

/** Returns the name of a task, from the event log's form or from a plain name. */
function taskName(task: unknown): string {
  const { role, index } = (task ?? {}) as { role?: string; index?: number };
  return role === undefined ? toPlainText(task) : `${role}:${index ?? 0}`;
}

function toEventRow(event: Record<string, unknown>, number: number): EventRow {
  const { time: when, kind, event: name, task, ...rest } = event;
  return {
    number,
    time: Number(when),
    kind: toPlainText(kind ?? name),
    task: taskName(task),
    details: toPlainText(rest),
  };
}
