// All tasks: sought, sorted, filtered; or one of them, when the address names it.

import { Input, Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Job, State, Task, Tasks as TasksAnswer } from "../api";
import { jobPath } from "../client";
import { between, bytes, mib, number, percent, time } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { amend, href, useRoute } from "../route";
import { type Column, Grid } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { StateTag } from "../shell/StateTag";
import { Toggle } from "../shell/Toggle";
import { hasEnded } from "./JobPage";
import { TaskDetails } from "./TaskDetails";

const STATES: State[] = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];

export default function Tasks({ job }: { job: Job }): ReactNode {
  const { path, query } = useRoute();
  const polled = usePolled<TasksAnswer>(jobPath(job.id, "tasks"), {}, hasEnded(job) ? 0 : 2);
  const all = polled.data?.tasks;
  const sought = query.get("text") ?? "";
  const role = query.get("role") ?? "";
  const state = query.get("state") ?? "";
  const slow = query.get("slow") === "1";
  const shown = useMemo(
    () => (all ?? []).filter((task) => fits(task, sought, role, state, slow)),
    [all, sought, role, state, slow],
  );
  const columns = useMemo(() => columnsOf(job.id, all ?? []), [job.id, all]);
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
      <Stale polled={polled} ended={hasEnded(job)} />
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={say("Search tasks")}
          placeholder={say("Task, host, container, exit")}
          defaultValue={sought}
          onChange={(event) => amend({ text: event.target.value })}
          style={{ width: 260 }}
        />
        <Select
          aria-label={say("Role")}
          value={role}
          onChange={(value) => amend({ role: value })}
          options={[
            { value: "", label: say("All roles") },
            ...job.roles.map(({ name }) => ({ value: name, label: name })),
          ]}
          style={{ minWidth: 130 }}
        />
        <Select
          aria-label={say("State")}
          value={state}
          onChange={(value) => amend({ state: value })}
          options={[{ value: "", label: say("All states") }, ...STATES.map((value) => ({ value, label: say(value) }))]}
          style={{ minWidth: 130 }}
        />
        <Toggle text={say("Stragglers only")} on={slow} onChange={(on) => amend({ slow: on ? 1 : "" })} />
        <span className="grow" />
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
  const text = [task.task, task.host, task.node, task.container, task.exit, task.gpus.join(" ")]
    .join(" ")
    .toLowerCase();
  return sought
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** What a task that does not run yet is doing, with how much of its data has come. */
export function phaseOf(task: Task): string {
  if (task.state !== "PENDING") return say(task.state);
  const fetched =
    task.phase === "localising" && task.data_total_bytes
      ? ` ${bytes(task.data_bytes)}/${bytes(task.data_total_bytes)}`
      : "";
  return say(task.phase) + fetched;
}

function columnsOf(job: string, tasks: Task[]): Column<Task>[] {
  const columns: (Column<Task> | false)[] = [
    {
      key: "task",
      title: say("Task"),
      width: "minmax(110px, 1fr)",
      by: (task) => task.task,
      cell: (task) => <a href={href(["jobs", job, "tasks", task.task])}>{task.task}</a>,
    },
    { key: "rank", title: say("Rank"), width: "70px", end: true, by: (task) => task.rank ?? Number.MAX_SAFE_INTEGER, cell: (task) => task.rank ?? say("spare") },
    {
      key: "state",
      title: say("State"),
      width: "minmax(130px, 1fr)",
      by: (task) => task.state + task.phase,
      cell: (task) => (
        <>
          <StateTag state={task.state} text={phaseOf(task)} />
          {task.straggler && (
            <span className="bad" title={task.straggler}>
              {" "}
              {say("slow")}
            </span>
          )}
          {task.notice && <span className="bad"> {task.notice}</span>}
        </>
      ),
    },
    {
      key: "attempt",
      title: say("Attempt"),
      width: "90px",
      end: true,
      by: (task) => task.attempt,
      cell: (task) => task.attempt || "",
    },
    {
      key: "host",
      title: say("Host"),
      width: "minmax(110px, 1.4fr)",
      by: (task) => task.host || task.node,
      cell: (task) => task.host || task.node,
      hint: (task) => task.host || task.node,
    },
    {
      key: "started",
      title: say("Started"),
      width: "minmax(86px, 0.8fr)",
      by: (task) => task.started,
      cell: (task) => (task.started ? time(task.started) : ""),
    },
    {
      key: "duration",
      title: say("Duration"),
      width: "90px",
      end: true,
      by: (task) => (task.started ? (task.finished || Date.now() / 1000) - task.started : 0),
      cell: (task) => between(task.started, task.finished),
    },
    {
      key: "progress",
      title: say("Progress"),
      width: "98px",
      end: true,
      by: (task) => task.progress ?? -1,
      cell: (task) => percent(task.progress),
    },
    {
      key: "cpu",
      title: say("CPU"),
      width: "66px",
      end: true,
      by: (task) => task.cpu,
      cell: (task) => (task.cpu ? number(task.cpu, 2) : ""),
    },
    {
      key: "memory",
      title: say("Memory"),
      width: "90px",
      end: true,
      by: (task) => task.memory_mib,
      cell: (task) => mib(task.memory_mib),
    },
    tasks.some((task) => task.gpus.length || task.gpu !== null) && {
      key: "gpu",
      title: say("GPU"),
      width: "98px",
      end: true,
      by: (task: Task) => task.gpu ?? -1,
      cell: (task: Task) => (task.gpu === null ? task.gpus.join(" ") : percent(task.gpu)),
    },
    {
      key: "exit",
      title: say("Exit"),
      width: "minmax(90px, 1.6fr)",
      by: (task) => task.exit,
      cell: (task) => task.exit,
      hint: (task) => task.exit,
    },
  ];
  return columns.filter((column) => column !== false);
}
