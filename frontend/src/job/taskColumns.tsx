// The columns of the table of tasks. Narrow windows show fewer of them by default.

import type { Task } from "../api";
import { StateTag } from "../components/StateTag";
import type { TableColumn } from "../components/VirtualTable";
import { formatElapsed, formatBytes, formatMib, formatNumber, formatPercent, formatTime } from "../format";
import { t } from "../language";
import { href } from "../router";
import { phaseName } from "./phaseNames";

/** Returns the state, or for a pending task its phase and how much of its data is downloaded. */
export function describeTaskState(task: Task): string {
  if (task.state !== "PENDING") return t(task.state);
  const fetched =
    task.phase === "localising" && task.data_total_bytes
      ? ` ${formatBytes(task.data_bytes)}/${formatBytes(task.data_total_bytes)}`
      : "";
  return phaseName(task.phase) + fetched;
}

/** Returns the columns of the table; those about GPUs only if a task has GPUs. */
export function taskColumns(job: string, tasks: Task[]): TableColumn<Task>[] {
  const columns: (TableColumn<Task> | false)[] = [
    {
      key: "task",
      title: t("Task"),
      width: "minmax(110px, 1fr)",
      sortValue: (task) => task.task,
      cell: (task) => <a href={href(["jobs", job, "tasks", task.task])}>{task.task}</a>,
    },
    {
      key: "role",
      title: t("Role"),
      width: "minmax(80px, 0.6fr)",
      minWindowWidth: 1700,
      sortValue: (task) => task.role,
      cell: (task) => task.role,
    },
    {
      key: "rank",
      title: t("Rank"),
      width: "70px",
      alignEnd: true,
      sortValue: (task) => task.rank ?? Number.MAX_SAFE_INTEGER,
      cell: (task) => task.rank ?? t("spare"),
    },
    {
      key: "state",
      title: t("State"),
      width: "minmax(160px, 1fr)",
      sortValue: (task) => task.state + task.phase,
      cell: (task) => (
        <>
          <StateTag state={task.state} text={describeTaskState(task)} />
          {task.straggler && (
            <span className="bad" title={task.straggler}>
              {" "}
              {t("slow")}
            </span>
          )}
          {task.notice && <span className="bad"> {task.notice}</span>}
        </>
      ),
    },
    {
      key: "attempt",
      title: t("Attempt"),
      width: "90px",
      alignEnd: true,
      sortValue: (task) => task.tries,
      cell: (task) => task.tries || "",
    },
    {
      key: "host",
      title: t("Host"),
      width: "minmax(110px, 1.4fr)",
      sortValue: (task) => task.host || task.node,
      cell: (task) => task.host || task.node,
      tooltip: (task) => task.host || task.node,
    },
    {
      key: "container",
      title: t("Container"),
      width: "minmax(112px, 1.4fr)",
      minWindowWidth: 1100,
      truncateStart: true,
      sortValue: (task) => task.container,
      cell: (task) => task.container,
      tooltip: (task) => task.container,
    },
    {
      key: "started",
      title: t("Started"),
      width: "minmax(86px, 0.8fr)",
      sortValue: (task) => task.started,
      cell: (task) => (task.started ? formatTime(task.started) : ""),
      tooltip: (task) => (task.started ? formatTime(task.started) : ""),
    },
    {
      key: "finished",
      title: t("Finished"),
      width: "minmax(86px, 0.8fr)",
      minWindowWidth: 1100,
      sortValue: (task) => task.finished,
      cell: (task) => (task.finished ? formatTime(task.finished) : ""),
      tooltip: (task) => (task.finished ? formatTime(task.finished) : ""),
    },
    {
      key: "duration",
      title: t("Duration"),
      width: "90px",
      minWindowWidth: 1500,
      alignEnd: true,
      sortValue: (task) => (task.started ? (task.finished || Date.now() / 1000) - task.started : 0),
      cell: (task) => formatElapsed(task.started, task.finished),
    },
    {
      key: "progress",
      title: t("Progress"),
      width: "98px",
      alignEnd: true,
      sortValue: (task) => task.progress ?? -1,
      cell: (task) => formatPercent(task.progress),
    },
    {
      key: "cpu",
      title: t("CPU"),
      width: "66px",
      minWindowWidth: 1500,
      alignEnd: true,
      sortValue: (task) => task.cpu,
      cell: (task) => (task.cpu ? formatNumber(task.cpu, 2) : ""),
    },
    {
      key: "memory",
      title: t("Memory"),
      width: "90px",
      minWindowWidth: 1350,
      alignEnd: true,
      sortValue: (task) => task.memory_mib,
      cell: (task) => formatMib(task.memory_mib),
    },
    tasks.some((task) => task.gpus.length) && {
      key: "gpus",
      title: t("GPUs"),
      width: "minmax(60px, 0.5fr)",
      sortValue: (task: Task) => task.gpus.join(" "),
      cell: (task: Task) => task.gpus.join(" "),
      tooltip: (task: Task) => task.gpus.join(" "),
    },
    tasks.some((task) => task.gpu !== null) && {
      key: "gpu",
      title: t("GPU usage"),
      width: "86px",
      minWindowWidth: 1250,
      alignEnd: true,
      sortValue: (task: Task) => task.gpu ?? -1,
      cell: (task: Task) => formatPercent(task.gpu),
    },
    {
      key: "exit",
      title: t("Exit"),
      width: "minmax(90px, 1.6fr)",
      sortValue: (task) => task.exit,
      cell: (task) => task.exit,
      tooltip: (task) => task.exit,
    },
  ];
  return columns.filter((column) => column !== false);
}
