// All tasks: sought, sorted, filtered; or one of them, when the address names it.

import { Input, Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Job, State, Task } from "../api";
import { say } from "../language";
import { usePolled } from "../polling";
import { english, retold } from "../retold";
import { amend, useRoute } from "../route";
import { ColumnChoice, useColumns } from "../shell/ColumnChoice";
import { Grid } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { Toggle } from "../shell/Toggle";
import { hasEnded } from "./jobState";
import { RoleChoice } from "./RoleChoice";
import { TaskDetails } from "./TaskDetails";
import { columnsOf } from "./taskColumns";

const STATES: State[] = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "STOPPED"];

export default function Tasks({ job }: { job: Job }): ReactNode {
  const { path, query } = useRoute();
  const polled = usePolled("jobs/{job}/tasks", { job: job.id }, {}, hasEnded(job) ? 0 : 2);
  const all = polled.data?.tasks;
  const sought = query.get("text") ?? "";
  const role = query.get("role") ?? "";
  const state = query.get("state") ?? "";
  const slow = query.get("slow") === "1";
  const shown = useMemo(
    () => (all ?? []).filter((task) => fits(task, sought, role, state, slow)),
    [all, sought, role, state, slow],
  );
  const possible = useMemo(() => columnsOf(job.id, all ?? []), [job.id, all]);
  const columns = useColumns(possible);
  if (!all) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  const wanted = path[3];
  if (wanted) {
    const task = all.find((each) => each.task === wanted);
    return task ? (
      <TaskDetails job={job} task={task} />
    ) : (
      <Nothing text={say("There is no task {task}.", { task: wanted })} />
    );
  }
  return (
    <>
      <Stale polled={polled} />
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={say("Search tasks")}
          placeholder={say("Task, host, container, exit")}
          defaultValue={sought}
          onChange={(event) => amend({ text: event.target.value })}
          style={{ width: 260 }}
        />
        <RoleChoice job={job} />
        <Select
          aria-label={say("State")}
          value={state}
          onChange={(value) => amend({ state: value })}
          options={[{ value: "", label: say("All states") }, ...STATES.map((value) => ({ value, label: say(value) }))]}
          style={{ minWidth: 130 }}
        />
        <Toggle text={say("Stragglers only")} on={slow} onChange={(on) => amend({ slow: on ? 1 : "" })} />
        <span className="grow" />
        <ColumnChoice possible={possible} shown={columns} />
        <span className="muted" role="status">
          {say("{shown} of {all} tasks", { shown: shown.length, all: all.length })}
        </span>
      </div>
      <Grid label={say("Tasks")} columns={columns} rows={shown} rowKey={(task) => task.task} />
    </>
  );
}

function fits(task: Task, sought: string, role: string, state: string, slow: boolean): boolean {
  if ((role && task.role !== role) || (state && task.state !== state) || (slow && !task.straggler)) return false;
  if (!sought) return true;
  const text = [task.task, task.state, task.host, task.node, task.container, english(task.exit), retold(task.exit), task.gpus.join(" ")]
    .join(" ")
    .toLowerCase();
  return sought
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
