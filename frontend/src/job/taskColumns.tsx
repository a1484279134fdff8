// What a table of tasks can show; narrow windows begin with less of it.

import type { Task } from "../api";
import { between, bytes, mib, number, percent, time } from "../format";
import { say } from "../language";
import { retold } from "../retold";
import { href } from "../route";
import type { Column } from "../shell/Grid";
import { StateTag } from "../shell/StateTag";

/** What a task that does not run yet is doing, with how much of its data has come. */
export function phaseOf(task: Task): string {
  if (task.state !== "PENDING") return say(task.state);
  const fetched =
    task.phase === "localising" && task.data_total_bytes
      ? ` ${bytes(task.data_bytes)}/${bytes(task.data_total_bytes)}`
      : "";
  return say(task.phase) + fetched;
}

/** Those of a table of tasks; GPUs only where some are known. */
export function columnsOf(job: string, tasks: Task[]): Column<Task>[] {
  const columns: (Column<Task> | false)[] = [
    {
      key: "task",
      title: say("Task"),
      width: "minmax(110px, 1fr)",
      by: (task) => task.task,
      cell: (task) => <a href={href(["jobs", job, "tasks", task.task])}>{task.task}</a>,
    },
    {
      key: "role",
      title: say("Role"),
      width: "minmax(80px, 0.6fr)",
      from: 1700,
      by: (task) => task.role,
      cell: (task) => task.role,
    },
    {
      key: "rank",
      title: say("Rank"),
      width: "70px",
      end: true,
      by: (task) => task.rank ?? Number.MAX_SAFE_INTEGER,
      cell: (task) => task.rank ?? say("spare"),
    },
    {
      key: "state",
      title: say("State"),
      width: "minmax(160px, 1fr)",
      by: (task) => task.state + task.phase,
      cell: (task) => (
        <>
          <StateTag state={task.state} text={phaseOf(task)} />
          {task.straggler && (
            <span className="bad" title={retold(task.straggler)}>
              {" "}
              {say("slow")}
            </span>
          )}
          {task.notice && <span className="bad"> {retold(task.notice)}</span>}
        </>
      ),
    },
    {
      key: "attempt",
      title: say("Attempt"),
      width: "90px",
      end: true,
      by: (task) => task.tries,
      cell: (task) => task.tries || "",
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
      key: "container",
      title: say("Container"),
      width: "minmax(112px, 1.4fr)",
      from: 1100,
      tail: true,
      by: (task) => task.container,
      cell: (task) => task.container,
      hint: (task) => task.container,
    },
    {
      key: "started",
      title: say("Started"),
      width: "minmax(86px, 0.8fr)",
      by: (task) => task.started,
      cell: (task) => (task.started ? time(task.started) : ""),
      hint: (task) => (task.started ? time(task.started) : ""),
    },
    {
      key: "finished",
      title: say("Finished"),
      width: "minmax(86px, 0.8fr)",
      from: 1100,
      by: (task) => task.finished,
      cell: (task) => (task.finished ? time(task.finished) : ""),
      hint: (task) => (task.finished ? time(task.finished) : ""),
    },
    {
      key: "duration",
      title: say("Duration"),
      width: "90px",
      from: 1500,
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
      from: 1500,
      end: true,
      by: (task) => task.cpu,
      cell: (task) => (task.cpu ? number(task.cpu, 2) : ""),
    },
    {
      key: "memory",
      title: say("Memory"),
      width: "90px",
      from: 1350,
      end: true,
      by: (task) => task.memory_mib,
      cell: (task) => mib(task.memory_mib),
    },
    tasks.some((task) => task.gpus.length) && {
      key: "gpus",
      title: say("GPUs"),
      width: "minmax(60px, 0.5fr)",
      by: (task: Task) => task.gpus.join(" "),
      cell: (task: Task) => task.gpus.join(" "),
      hint: (task: Task) => task.gpus.join(" "),
    },
    tasks.some((task) => task.gpu !== null) && {
      key: "gpu",
      title: say("GPU use"),
      width: "86px",
      from: 1250,
      end: true,
      by: (task: Task) => task.gpu ?? -1,
      cell: (task: Task) => percent(task.gpu),
    },
    {
      key: "exit",
      title: say("Exit"),
      width: "minmax(90px, 1.6fr)",
      by: (task) => retold(task.exit),
      cell: (task) => retold(task.exit),
      hint: (task) => retold(task.exit),
    },
  ];
  return columns.filter((column) => column !== false);
}
