// The logs: one task's log as it is written, and a search in the logs of all tasks.

import { Input, Segmented, Select } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { apiUrl } from "../apiClient";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { hasEnded } from "../job/jobState";
import { taskNames } from "../job/taskNames";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { BEGINNING } from "./LogReader";
import { LevelFilter } from "./LevelFilter";
import { LogSearchResults } from "./LogSearchResults";
import { type LogOptions, LogView } from "./LogView";
import { MergedLog } from "./MergedLog";
import { SHOWN_TASK } from "./TaskScope";

/** The task of the address that stands for all tasks. */
const ALL_TASKS = "*";

export default function LogsTab({ job }: { job: Job }): ReactNode {
  const { query } = useRoute();
  const names = taskNames(job);
  const task = query.get("task") ?? job.failure?.task ?? names[0] ?? "";
  const merged = task === ALL_TASKS;
  const stream = query.get("stream") ?? "both";
  const attempt = query.get("attempt") ?? "";
  const level = query.get("level") ?? "";
  const searchText = query.get("text") ?? "";
  const position = query.get("at") ?? "";
  const among = query.get("among") ?? "";
  const scope = among === SHOWN_TASK ? "" : among;
  const searching = Boolean(searchText || level);
  const [attempts, setAttempts] = useState<number[]>([]);
  const [searchCount, setSearchCount] = useState(0);
  // A search for a level alone begins with the task that is shown; a change of the level keeps the scope of the search.
  const chooseLevel = (value: string): void => {
    if (merged) return updateQuery({ level: value });
    const scope = value ? SHOWN_TASK : "";
    updateQuery({ level: value, ...(searchText || (level && value) ? {} : { among: scope }) });
  };
  const options = {
    numbers: query.get("numbers") !== "0",
    times: query.get("times") === "1",
    wrap: query.get("wrap") === "1",
  };
  const showLog = (changes: Record<string, string>): void => updateQuery({ at: "", ...changes });
  const search = (text: string): void => {
    if (text && text === searchText) setSearchCount((last) => last + 1);
    else updateQuery({ text, ...(searchText || merged ? {} : { among: "" }) });
  };
  const height = searching ? "calc(100vh - 590px)" : "calc(100vh - 330px)";
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Select
          showSearch
          aria-label={t("Task")}
          value={task}
          options={[
            ...(names.length > 1 ? [{ value: ALL_TASKS, label: t("All tasks, merged") }] : []),
            ...names.map((value) => ({ value, label: value })),
          ]}
          onChange={(value) => showLog({ task: value, attempt: "" })}
          style={{ width: 170 }}
        />
        <Select
          aria-label={t("Attempt")}
          disabled={merged}
          value={attempt}
          options={[
            { value: "", label: t("Latest attempt") },
            ...attempts.map((each) => ({ value: `${each}`, label: t("Attempt {number}", { number: each }) })),
          ]}
          onChange={(value) => showLog({ attempt: value })}
          style={{ width: 160 }}
        />
        <Segmented
          aria-label={t("Stream")}
          disabled={merged}
          value={stream}
          options={[
            { value: "both", label: t("Both") },
            { value: "stdout", label: "stdout" },
            { value: "stderr", label: "stderr" },
          ]}
          onChange={(value) => showLog({ stream: value })}
        />
        <LevelFilter job={job.id} scope={merged ? scope : task} level={level} onChange={chooseLevel} />
        {!merged && (
          <a href={apiUrl("jobs/{job}/logs/{task}/download", { job: job.id, task }, { stream, attempt })} download>
            {t("Download")}
          </a>
        )}
        <a
          href={apiUrl("jobs/{job}/logs/archive", { job: job.id }, { task: merged ? scope : "" })}
          title={t("What all attempts have printed, as a zip archive")}
          download
        >
          {t("Download all")}
        </a>
        <span className="grow" />
        <Input.Search
          allowClear
          aria-label={t("Search all tasks' logs")}
          placeholder={t("Search all tasks' logs")}
          defaultValue={searchText}
          onSearch={search}
          style={{ width: 260 }}
        />
      </div>
      {searching && (
        <LogSearchResults
          job={job}
          text={searchText}
          level={level}
          task={merged ? "" : task}
          searchCount={searchCount}
          onRepeat={() => setSearchCount((last) => last + 1)}
        />
      )}
      <LogOptionSwitches options={options} withNumbers={!merged} />
      {merged && <MergedLog job={job} scope={scope} level={level} options={options} height={height} />}
      {task && !merged && (
        <LogView
          job={job.id}
          task={task}
          attempt={attempt}
          stream={stream}
          level={position && position !== BEGINNING ? "" : level}
          live={!hasEnded(job)}
          position={position}
          height={height}
          options={options}
          onAttempts={setAttempts}
          onPositionChange={(value) => showLog({ at: value })}
          onChooseLine={updateQuery}
        />
      )}
    </>
  );
}

/** Says what is shown beside the lines, and how; the address keeps it. */
function LogOptionSwitches({ options, withNumbers }: { options: LogOptions; withNumbers: boolean }): ReactNode {
  const { numbers, times, wrap } = options;
  return (
    <div className="row" style={{ marginBottom: 6, columnGap: 16 }}>
      {withNumbers && (
        <LabeledSwitch
          text={t("Line numbers")}
          on={numbers}
          onChange={(on) => updateQuery({ numbers: on ? "" : "0" })}
        />
      )}
      <LabeledSwitch text={t("Times")} on={times} onChange={(on) => updateQuery({ times: on ? "1" : "" })} />
      <LabeledSwitch text={t("Wrap lines")} on={wrap} onChange={(on) => updateQuery({ wrap: on ? "1" : "" })} />
    </div>
  );
}
