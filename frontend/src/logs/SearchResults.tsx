// Where a text, or a level, was found in logs whole, of all tasks or some; a hit leads to its place in the log below.

import { Button, Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Hit, Job } from "../api";
import { bytes, duration, time } from "../format";
import { taskNames } from "../job/names";
import { say } from "../language";
import { usePolled } from "../polling";
import { retold } from "../retold";
import { amend, useRoute } from "../route";
import { type Column, Grid } from "../shell/Grid";
import { Toggle } from "../shell/Toggle";

interface Props {
  job: Job;
  /** Empty where all lines of a level are sought. */
  text: string;
  level: string;
  /** Whose log is shown below. */
  task: string;
  /** Another number: search again. */
  round: number;
  onAgain: () => void;
}

const LIMIT = 500;

/** Among: the task whose log is shown, whichever it is. */
export const HERE = "here";

export function SearchResults({ job, text, level, task, round, onAgain }: Props): ReactNode {
  const { query } = useRoute();
  const regex = query.get("regex") === "1" ? 1 : 0;
  const among = query.get("among") ?? "";
  const asked = { text, regex, level, task: among === HERE ? task : among, limit: LIMIT };
  const polled = usePolled("jobs/{job}/search", { job: job.id }, asked, 0, false, round);
  const columns = useMemo(() => columnsOf(), []);
  const found = polled.data;
  return (
    <section aria-label={say("Found")} style={{ marginBottom: 10 }}>
      <div className="row" style={{ marginBottom: 6 }}>
        <Toggle text={say("Pattern")} on={regex === 1} onChange={(on) => amend({ regex: on ? 1 : "" })} />
        <Among job={job} among={among} />
        <span role="status" className={polled.error ? "bad" : "muted"}>
          {!found && (polled.error?.message ?? say("Searching…"))}
          {found &&
            say("{hits} hits in {size}, {time}", {
              hits: found.hits.length,
              size: bytes(found.scanned_bytes),
              time: duration(found.seconds),
            })}
          {found && !found.complete && ` · ${say("there is more")}`}
          {found && ` · ${say("searched at {time}", { time: time(polled.at) })}`}
        </span>
        <Button size="small" onClick={onAgain}>
          {say("Search again")}
        </Button>
      </div>
      {found?.problems?.map((problem) => (
        <p key={retold(problem)} className="bad" style={{ margin: "0 0 6px" }}>
          {retold(problem)}
        </p>
      ))}
      {found && <Grid label={say("Found")} columns={columns} rows={found.hits} rowKey={keyOf} height="220px" />}
    </section>
  );
}

/** Tasks, roles or ranks, those that are offered or any that are written; none stands for all. */
function Among({ job, among }: { job: Job; among: string }): ReactNode {
  const offered = [...job.roles.map(({ name }) => name), ...taskNames(job)];
  const options = [{ value: HERE, label: say("The task below") }, ...offered.map((value) => ({ value, label: value }))];
  const choose = (values: string[]): void => {
    const last = values.at(-1);
    const left = last === HERE ? [HERE] : values.filter((value) => value !== HERE);
    amend({ among: left.join(",") });
  };
  return (
    <Select
      mode="tags"
      size="small"
      aria-label={say("Search in")}
      placeholder={say("All tasks; or worker:0-7")}
      value={among.split(",").filter(Boolean)}
      options={options}
      onChange={choose}
      tokenSeparators={[",", " "]}
      style={{ minWidth: 220, maxWidth: 480 }}
    />
  );
}

function keyOf(hit: Hit): string {
  return `${hit.task} ${hit.attempt} ${hit.stream} ${hit.offset}`;
}

function columnsOf(): Column<Hit>[] {
  const open = (hit: Hit): void =>
    amend({ task: hit.task, attempt: hit.attempt, stream: hit.stream, at: hit.offset });
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
