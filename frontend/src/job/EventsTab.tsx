// The job's events as sentences, newest first, filtered by kind, task and words.

import { Input, Select } from "antd";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { Job } from "../api";
import { apiGet } from "../apiClient";
import { useVisibleColumns } from "../components/ColumnPicker";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { toPlainText, formatTime } from "../format";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { kindName } from "./eventKinds";
import { hasEnded } from "./jobState";
import { toYaml } from "./toYaml";

interface EventRow {
  number: number;
  time: number;
  kind: string;
  task: string;
  /** The event in the reader's language, "" where none is known. */
  sentence: string;
  /** All fields of the event, as the event log has them. */
  details: string;
}

/** The length of a time of today; others have a date. */
const CLOCK_LENGTH = 8;
const EVENTS_PER_REQUEST = 1000;
const MAX_EVENTS = 100_000;

export default function EventsTab({ job }: { job: Job }): ReactNode {
  const { rows, error } = useEvents(job.id, !hasEnded(job));
  const { query } = useRoute();
  const [unfoldedKey, setUnfoldedKey] = useState<string>();
  const [search, kind, task] = ["text", "kind", "task"].map((name) => query.get(name) ?? "") as [string, string, string];
  const visibleEvents = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = rows.filter((row) => {
      if ((kind && row.kind !== kind) || (task && row.task !== task)) return false;
      const text = `${row.kind} ${kindName(row.kind)} ${row.task} ${row.sentence} ${row.details}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return matching.reverse();
  }, [rows, search, kind, task]);
  const withDates = visibleEvents.some((row) => formatTime(row.time).length > CLOCK_LENGTH);
  const columns = useVisibleColumns(
    useMemo(() => eventColumns(withDates, unfoldedKey, setUnfoldedKey), [withDates, unfoldedKey]),
  );
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={t("Search events")}
          placeholder={t("Kind, task, text")}
          defaultValue={search}
          onChange={(event) => updateQuery({ text: event.target.value })}
          style={{ width: 220 }}
        />
        <ValueFilter
          label={t("Kind")}
          name="kind"
          value={kind}
          values={rows.map((row) => row.kind)}
          nameOf={kindName}
        />
        <ValueFilter label={t("Task")} name="task" value={task} values={rows.map((row) => row.task)} />
        <span className="muted" role="status">
          {t("{shown} of {all} events, newest first", { shown: visibleEvents.length, all: rows.length })}
        </span>
        {error && <span className="bad">{error}</span>}
      </div>
      <VirtualTable
        label={t("Events")}
        columns={columns}
        rows={visibleEvents}
        rowKey={eventKey}
        unfoldedKey={unfoldedKey}
        details={(row) => (
          <pre className="text wrap" tabIndex={0}>
            {toYaml(JSON.parse(row.details))}
          </pre>
        )}
      />
    </>
  );
}

interface ValueFilterProps {
  label: string;
  /** The name in the address. */
  name: string;
  value: string;
  values: string[];
  nameOf?: (value: string) => string;
}

function ValueFilter({ label, name, value, values, nameOf = String }: ValueFilterProps): ReactNode {
  const options = [...new Set(values)].filter(Boolean).map((each) => ({ value: each, label: nameOf(each) }));
  return (
    <Select
      aria-label={label}
      allowClear
      showSearch={{ optionFilterProp: "label" }}
      placeholder={label}
      value={value || undefined}
      onChange={(chosen: string | undefined) => updateQuery({ [name]: chosen ?? "" })}
      options={options.sort((a, b) => a.label.localeCompare(b.label))}
      style={{ width: 150 }}
    />
  );
}

function eventKey({ number }: EventRow): string {
  return `${number}`;
}

function eventColumns(withDates: boolean, unfoldedKey: string | undefined, unfold: (key: string | undefined) => void): TableColumn<EventRow>[] {
  return [
    {
      key: "time",
      title: t("Time"),
      width: withDates ? "165px" : "85px",
      sortValue: (row) => row.number,
      cell: (row) => formatTime(row.time),
    },
    {
      key: "task",
      title: t("Task"),
      width: "110px",
      minWindowWidth: 700, // the sentence names it, too
      sortValue: (row) => row.task,
      cell: (row) => row.task,
    },
    {
      key: "event",
      title: t("Event"),
      width: "minmax(260px, 1fr)",
      cell: (row) => {
        const isUnfolded = eventKey(row) === unfoldedKey;
        return (
          <>
            <button
              type="button"
              className="link-button"
              style={{ padding: "0 4px", outlineOffset: -2 }} // the cell cuts what is outside
              aria-expanded={isUnfolded}
              aria-label={t("Fields of the event {kind}", { kind: kindName(row.kind) })}
              onClick={() => unfold(isUnfolded ? undefined : eventKey(row))}
            >
              {isUnfolded ? "▾" : "▸"}
            </button>{" "}
            {row.sentence || <span className="mono muted">{row.details}</span>}
          </>
        );
      },
      tooltip: (row) => [row.sentence, row.details.slice(0, 2000)].filter(Boolean).join("\n"),
    },
    {
      key: "kind",
      title: t("Kind"),
      width: "150px",
      minWindowWidth: 700,
      sortValue: (row) => kindName(row.kind),
      cell: (row) => kindName(row.kind),
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
              [
                ...last,
                ...response.events.map((event, index) =>
                  toEventRow(event, response.sentences[index] ?? "", firstNumber + index),
                ),
              ].slice(-MAX_EVENTS),
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

function toEventRow(event: Record<string, unknown>, sentence: string, number: number): EventRow {
  const { time: when, kind, event: name, task, ...rest } = event;
  return {
    number,
    time: Number(when),
    kind: toPlainText(kind ?? name),
    task: taskName(task),
    sentence,
    details: toPlainText(rest),
  };
}
