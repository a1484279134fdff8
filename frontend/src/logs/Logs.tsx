// What tasks print: one of them as it comes, and a search through all.

import { Input, Segmented, Select } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { address } from "../client";
import { hasEnded } from "../job/jobState";
import { taskNames } from "../job/names";
import { say } from "../language";
import { amend, useRoute } from "../route";
import { LogView } from "./LogView";
import { BEGINNING } from "./reader";
import { HERE, SearchResults } from "./SearchResults";

export default function Logs({ job }: { job: Job }): ReactNode {
  const { query } = useRoute();
  const names = taskNames(job);
  const task = query.get("task") ?? job.failure?.task ?? names[0] ?? "";
  const stream = query.get("stream") ?? "both";
  const attempt = query.get("attempt") ?? "";
  const level = query.get("level") ?? "";
  const sought = query.get("text") ?? "";
  const at = query.get("at") ?? "";
  const searching = Boolean(sought || level);
  const [attempts, setAttempts] = useState<number[]>([]);
  const [round, setRound] = useState(0);
  // A level alone begins with the task that is shown; another level is sought where the one before was.
  const choose = (value: string): void => {
    const begins = value ? HERE : "";
    amend({ level: value, ...(sought || (level && value) ? {} : { among: begins }) });
  };
  const place = (changes: Record<string, string>): void => amend({ at: "", ...changes });
  const search = (text: string): void => {
    if (text && text === sought) setRound((last) => last + 1);
    else amend({ text, ...(sought ? {} : { among: "" }) });
  };
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Select
          showSearch
          aria-label={say("Task")}
          value={task}
          options={names.map((value) => ({ value, label: value }))}
          onChange={(value) => place({ task: value, attempt: "" })}
          style={{ width: 170 }}
        />
        <Select
          aria-label={say("Attempt")}
          value={attempt}
          options={[
            { value: "", label: say("Latest attempt") },
            ...attempts.map((each) => ({ value: `${each}`, label: say("Attempt {number}", { number: each }) })),
          ]}
          onChange={(value) => place({ attempt: value })}
          style={{ width: 160 }}
        />
        <Segmented
          aria-label={say("Stream")}
          value={stream}
          options={[
            { value: "both", label: say("Both") },
            { value: "stdout", label: "stdout" },
            { value: "stderr", label: "stderr" },
          ]}
          onChange={(value) => place({ stream: value })}
        />
        <Select
          aria-label={say("Level")}
          value={level}
          options={[
            { value: "", label: say("All levels") },
            { value: "warning", label: say("Warnings, errors") },
            { value: "error", label: say("Errors") },
          ]}
          onChange={choose}
          style={{ width: 160 }}
        />
        <a href={address("jobs/{job}/logs/{task}/download", { job: job.id, task }, { stream, attempt })} download>
          {say("Download")}
        </a>
        <span className="grow" />
        <Input.Search
          allowClear
          aria-label={say("Search all tasks' logs")}
          placeholder={say("Search all tasks' logs")}
          defaultValue={sought}
          onSearch={search}
          style={{ width: 260 }}
        />
      </div>
      {searching && (
        <SearchResults
          job={job}
          text={sought}
          level={level}
          task={task}
          round={round}
          onAgain={() => setRound((last) => last + 1)}
        />
      )}
      {task && (
        <LogView
          job={job.id}
          task={task}
          attempt={attempt}
          stream={stream}
          level={at && at !== BEGINNING ? "" : level}
          live={!hasEnded(job)}
          at={at}
          height={searching ? "calc(100vh - 560px)" : "calc(100vh - 300px)"}
          onAttempts={setAttempts}
          onPlace={(value) => place({ at: value })}
        />
      )}
    </>
  );
}
