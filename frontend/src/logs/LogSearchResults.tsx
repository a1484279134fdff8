// The matches of a search in the whole logs of all or some tasks. A match opens its line in the log below.

import { Button } from "antd";
import { type ReactNode, useMemo } from "react";
import type { LogMatch, Job } from "../api";
import { apiUrl } from "../apiClient";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { useVisibleColumns } from "../components/ColumnPicker";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { formatBytes, formatDuration, formatTime } from "../format";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { stripEscapes } from "./ansi";
import { SHOWN_TASK, TaskScope } from "./TaskScope";

interface Props {
  job: Job;
  /** The text to search for; empty to find all lines of the level. */
  text: string;
  level: string;
  /** The task whose log is shown below; empty if there is more than one. */
  task: string;
  /** How often the search was repeated; another number searches again. */
  searchCount: number;
  onRepeat: () => void;
}

const MAX_MATCHES = 500;

export function LogSearchResults({ job, text, level, task, searchCount, onRepeat }: Props): ReactNode {
  const { query } = useRoute();
  const regex = query.get("regex") === "1" ? 1 : 0;
  const scope = query.get("among") ?? "";
  const searched = { text, regex, level, task: scope === SHOWN_TASK ? task : scope };
  const params = { ...searched, limit: MAX_MATCHES };
  const polled = usePolling("jobs/{job}/search", { job: job.id }, params, 0, false, searchCount);
  const columns = useVisibleColumns(useMemo(() => matchColumns(), []));
  const response = polled.data;
  return (
    <section aria-label={t("Search results")} style={{ marginBottom: 10 }}>
      <div className="row" style={{ marginBottom: 6 }}>
        <LabeledSwitch
          text={t("Regular expression")}
          on={regex === 1}
          onChange={(on) => updateQuery({ regex: on ? 1 : "" })}
        />
        <TaskScope job={job} scope={scope} withShownTask={task !== ""} />
        <span role="status" className={polled.error ? "bad" : "muted"}>
          {!response && (polled.error?.message ?? t("Searching…"))}
          {response &&
            t("{hits} matches in {size}, {time}", {
              hits: response.hits.length,
              size: formatBytes(response.scanned_bytes),
              time: formatDuration(response.seconds),
            })}
          {response && !response.complete && ` · ${t("there are more")}`}
          {response && ` · ${t("searched at {time}", { time: formatTime(polled.receivedAt) })}`}
        </span>
        <Button size="small" onClick={onRepeat}>
          {t("Search again")}
        </Button>
        <a href={apiUrl("jobs/{job}/search/download", { job: job.id }, searched)} download>
          {t("Download matches")}
        </a>
      </div>
      {response?.problems?.map((problem) => (
        <p key={problem} className="bad" style={{ margin: "0 0 6px" }}>
          {problem}
        </p>
      ))}
      {response && (
        <VirtualTable
          label={t("Search results")}
          columns={columns}
          rows={response.hits}
          rowKey={matchKey}
          height="220px"
        />
      )}
    </section>
  );
}

function matchKey(hit: LogMatch): string {
  return `${hit.task} ${hit.attempt} ${hit.stream} ${hit.offset}`;
}

function matchColumns(): TableColumn<LogMatch>[] {
  const openMatch = (hit: LogMatch): void =>
    updateQuery({ task: hit.task, attempt: hit.attempt, stream: hit.stream, at: hit.offset });
  return [
    {
      key: "task",
      title: t("Task"),
      width: "110px",
      sortValue: (hit) => hit.task,
      cell: (hit) => (
        <button type="button" className="link-button" onClick={() => openMatch(hit)}>
          {hit.task}
          {hit.attempt > 1 && ` #${hit.attempt}`}
        </button>
      ),
    },
    { key: "stream", title: t("Stream"), width: "80px", minWindowWidth: 700, cell: (hit) => hit.stream },
    {
      key: "line",
      title: t("Line"),
      width: "80px",
      minWindowWidth: 700,
      alignEnd: true,
      sortValue: (hit) => hit.line,
      cell: (hit) => hit.line,
    },
    {
      key: "time",
      title: t("Time"),
      width: "100px",
      minWindowWidth: 700,
      sortValue: (hit) => hit.time ?? 0,
      cell: (hit) => (hit.time ? formatTime(hit.time) : ""),
    },
    {
      key: "text",
      title: t("Text"),
      width: "minmax(300px, 1fr)",
      tooltip: (hit) => stripEscapes(hit.text).slice(0, 1000),
      cell: (hit) => (
        <span className={`mono ${hit.level === "error" ? "bad" : ""}`} style={{ whiteSpace: "pre" }}>
          {stripEscapes(hit.text)}
        </span>
      ),
    },
  ];
}
