// Where a text was found in the logs of all tasks and attempts; a hit leads to its place in the log above or below.

import { Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Hit, Search } from "../api";
import { jobPath } from "../client";
import { bytes, duration, time } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { amend, useRoute } from "../route";
import { type Column, Grid } from "../shell/Grid";
import { Toggle } from "../shell/Toggle";

interface Props {
  job: string;
  text: string;
  names: string[];
  level: string;
}

const LIMIT = 500;

export function SearchResults({ job, text, names, level }: Props): ReactNode {
  const { query } = useRoute();
  const regex = query.get("regex") === "1" ? 1 : 0;
  const among = query.get("among") ?? "";
  const asked = { text, regex, level, task: among, limit: LIMIT };
  const polled = usePolled<Search>(jobPath(job, "search"), asked, 0);
  const columns = useMemo(() => columnsOf(), []);
  const found = polled.data;
  return (
    <section aria-label={say("Found")} style={{ marginBottom: 10 }}>
      <div className="row" style={{ marginBottom: 6 }}>
        <Toggle text={say("Pattern")} on={regex === 1} onChange={(on) => amend({ regex: on ? 1 : "" })} />
        <Select
          showSearch
          size="small"
          aria-label={say("Search in")}
          value={among}
          options={[{ value: "", label: say("All tasks") }, ...names.map((value) => ({ value, label: value }))]}
          onChange={(value) => amend({ among: value })}
          style={{ width: 150 }}
        />
        <span role="status" className={polled.error ? "bad" : "muted"}>
          {!found && (polled.error?.message ?? say("Searching…"))}
          {found &&
            say("{hits} hits in {size}, {time}", {
              hits: found.hits.length,
              size: bytes(found.scanned_bytes),
              time: duration(found.seconds),
            })}
          {found && !found.complete && ` · ${say("there is more")}`}
        </span>
      </div>
      {found && <Grid label={say("Found")} columns={columns} rows={found.hits} rowKey={keyOf} height="220px" />}
    </section>
  );
}

function keyOf(hit: Hit): string {
  return `${hit.task} ${hit.attempt} ${hit.stream} ${hit.offset}`;
}

function columnsOf(): Column<Hit>[] {
  const open = (hit: Hit): void =>
    amend({ task: hit.task, attempt: hit.attempt, stream: hit.stream, at: hit.offset, level: "" });
  return [
    {
      key: "task",
      title: say("Task"),
      width: "130px",
      by: (hit) => hit.task,
      cell: (hit) => (
        <button type="button" className="plain" onClick={() => open(hit)}>
          {hit.task}
          {hit.attempt > 1 && ` #${hit.attempt}`}
        </button>
      ),
    },
    { key: "stream", title: say("Stream"), width: "80px", cell: (hit) => hit.stream },
    { key: "line", title: say("Line"), width: "80px", end: true, by: (hit) => hit.line, cell: (hit) => hit.line },
    {
      key: "time",
      title: say("Time"),
      width: "100px",
      by: (hit) => hit.time ?? 0,
      cell: (hit) => (hit.time ? time(hit.time) : ""),
    },
    {
      key: "text",
      title: say("Text"),
      width: "minmax(300px, 1fr)",
      hint: (hit) => hit.text.slice(0, 1000),
      cell: (hit) => <span className={`mono ${hit.level === "error" ? "bad" : ""}`}>{hit.text}</span>,
    },
  ];
}
