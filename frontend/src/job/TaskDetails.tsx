// One task: its attempts, its resource usage and metrics, and the end of its log.

import { lazy, type ReactNode, useState } from "react";
import type { Job, Task } from "../api";
import { DescriptionList } from "../components/DescriptionList";
import { SafeLink } from "../components/SafeLink";
import { StateTag } from "../components/StateTag";
import { formatElapsed, formatMib, formatNumber, formatPercent, formatTime } from "../format";
import { t } from "../language";
import { LogView } from "../logs/LogView";
import { href } from "../router";
import { hasEnded } from "./jobState";
import { LogLink } from "./LogLink";
import { StackTracesButton } from "./StackTracesButton";
import { describeTaskState } from "./taskColumns";

const MetricCharts = lazy(() => import("./MetricCharts"));

export function TaskDetails({ job, task }: { job: Job; task: Task }): ReactNode {
  const ended = hasEnded(job) || task.finished > 0;
  const [logPosition, setLogPosition] = useState("");
  return (
    <>
      <p style={{ margin: "0 0 8px" }}>
        <a href={href(["jobs", job.id, "tasks"])}>← {t("All tasks")}</a>
      </p>
      <div className="cards">
        <section className="card">
          <h2>{task.task}</h2>
          <TaskDescription task={task} />
          {!ended && job.can.stacks && (
            <div style={{ marginTop: 8 }}>
              <StackTracesButton job={job} task={task.task} />
            </div>
          )}
        </section>
        <section className="card scroll fit-content">
          <h2>{t("Attempts")}</h2>
          <AttemptTable job={job} task={task} />
        </section>
      </div>
      <section className="card" style={{ marginTop: 12 }}>
        <h2>{t("Resource usage and metrics")}</h2>
        <MetricCharts job={job.id} tasks={[task.task]} live={!ended} />
      </section>
      <section className="card" style={{ marginTop: 12 }}>
        <h2>
          <a href={href(["jobs", job.id, "logs"], { task: task.task })}>{t("Logs")}</a>
        </h2>
        <LogView
          job={job.id}
          task={task.task}
          attempt=""
          stream="both"
          level=""
          live={!ended}
          position={logPosition}
          height="320px"
          onPositionChange={setLogPosition}
        />
      </section>
    </>
  );
}

function TaskDescription({ task }: { task: Task }): ReactNode {
  const ports = Object.entries(task.ports).map(([name, port]) => `${name} ${port}`);
  const metrics = Object.entries(task.metrics).map(
    ([name, value]) => `${name} ${value === null ? "NaN" : formatNumber(value, 5)}`,
  );
  return (
    <DescriptionList
      items={[
        [t("State"), describeTaskState(task)],
        [t("Rank"), task.rank === null ? t("spare") : `${task.rank}`],
        [t("Exit"), task.exit],
        [t("Host"), task.host || task.node],
        [t("Container"), task.log_url ? <SafeLink url={task.log_url}>{task.container}</SafeLink> : task.container],
        [t("Process id"), task.pid || ""],
        [t("Ports"), ports.join(", ")],
        [t("GPUs"), task.gpus.join(", ")],
        [t("Started"), task.started ? formatTime(task.started) : ""],
        [t("Duration"), formatElapsed(task.started, task.finished)],
        [t("Progress"), formatPercent(task.progress)],
        [
          t("Memory"),
          task.memory_mib
            ? t("{now}, peak {peak}", { now: formatMib(task.memory_mib), peak: formatMib(task.peak_mib) })
            : "",
        ],
        [t("Metrics"), metrics.join(", ")],
      ]}
    />
  );
}

function AttemptTable({ job, task }: { job: Job; task: Task }): ReactNode {
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{t("Attempt")}</th>
          <th scope="col">{t("Exit")}</th>
          <th scope="col">{t("Log")}</th>
          <th scope="col">{t("Started")}</th>
          <th scope="col">{t("Finished")}</th>
          <th scope="col">{t("Duration")}</th>
          <th scope="col">{t("Node")}</th>
          <th scope="col">{t("Container")}</th>
        </tr>
      </thead>
      <tbody>
        {[...task.attempts].reverse().map((each) => (
          <tr key={each.try_number}>
            <td>{each.try_number}</td>
            <td>
              <StateTag state={each.state} text={each.exit} />
            </td>
            <td className="nowrap">
              <LogLink job={job.id} start={{ ...each, task: task.task }} />
            </td>
            <td className="nowrap">{formatTime(each.started)}</td>
            <td className="nowrap">{each.finished ? formatTime(each.finished) : ""}</td>
            <td className="nowrap">{formatElapsed(each.started, each.finished)}</td>
            <td>{each.node}</td>
            <td className="mono">{each.container}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
