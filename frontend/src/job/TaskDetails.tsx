// One task: where it runs and ran, what it uses, the end of what it prints.

import { lazy, type ReactNode, useState } from "react";
import type { Job, Task } from "../api";
import { between, mib, number, percent, time } from "../format";
import { say } from "../language";
import { LogView } from "../logs/LogView";
import { retold } from "../retold";
import { href } from "../route";
import { Facts } from "../shell/Facts";
import { SafeLink } from "../shell/SafeLink";
import { hasEnded } from "./jobState";
import { StacksButton } from "./StacksDialog";
import { phaseOf } from "./taskColumns";

const Usage = lazy(() => import("./UsageCharts"));

export function TaskDetails({ job, task }: { job: Job; task: Task }): ReactNode {
  const ended = hasEnded(job) || task.finished > 0;
  const [at, setAt] = useState("");
  return (
    <>
      <p style={{ margin: "0 0 8px" }}>
        <a href={href(["jobs", job.id, "tasks"])}>← {say("All tasks")}</a>
      </p>
      <div className="cards">
        <section className="card">
          <h2>{task.task}</h2>
          <About task={task} />
          {!ended && job.can.stacks && <StacksButton job={job} task={task} />}
        </section>
        <section className="card scroll whole">
          <h2>{say("Attempts")}</h2>
          <Attempts job={job} task={task} />
        </section>
      </div>
      <section className="card" style={{ marginTop: 12 }}>
        <h2>{say("Use")}</h2>
        <Usage job={job.id} tasks={[task.task]} live={!ended} />
      </section>
      <section className="card" style={{ marginTop: 12 }}>
        <h2>
          <a href={href(["jobs", job.id, "logs"], { task: task.task })}>{say("Logs")}</a>
        </h2>
        <LogView
          job={job.id}
          task={task.task}
          attempt=""
          stream="both"
          level=""
          live={!ended}
          at={at}
          height="320px"
          onPlace={setAt}
        />
      </section>
    </>
  );
}

function About({ task }: { task: Task }): ReactNode {
  const ports = Object.entries(task.ports).map(([name, port]) => `${name} ${port}`);
  const measured = Object.entries(task.metrics).map(
    ([name, value]) => `${name} ${value === null ? "NaN" : number(value, 5)}`,
  );
  return (
    <Facts
      facts={[
        [say("State"), phaseOf(task)],
        [say("Rank"), task.rank === null ? say("spare") : `${task.rank}`],
        [say("Exit"), retold(task.exit)],
        [say("Host"), task.host || task.node],
        [say("Container"), task.log_url ? <SafeLink url={task.log_url}>{task.container}</SafeLink> : task.container],
        [say("Process"), task.pid || ""],
        [say("Ports"), ports.join(", ")],
        [say("GPUs"), task.gpus.join(", ")],
        [say("Started"), task.started ? time(task.started) : ""],
        [say("Duration"), between(task.started, task.finished)],
        [say("Progress"), percent(task.progress)],
        [
          say("Memory"),
          task.memory_mib ? say("{now}, at most {peak}", { now: mib(task.memory_mib), peak: mib(task.peak_mib) }) : "",
        ],
        [say("Values"), measured.join(", ")],
      ]}
    />
  );
}

function Attempts({ job, task }: { job: Job; task: Task }): ReactNode {
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{say("Attempt")}</th>
          <th scope="col">{say("Node")}</th>
          <th scope="col">{say("Container")}</th>
          <th scope="col">{say("Started")}</th>
          <th scope="col">{say("Duration")}</th>
          <th scope="col">{say("Exit")}</th>
        </tr>
      </thead>
      <tbody>
        {[...task.attempts].reverse().map((each) => (
          <tr key={each.attempt}>
            <td>
              <a href={href(["jobs", job.id, "logs"], { task: task.task, attempt: each.attempt })}>{each.attempt}</a>
            </td>
            <td>{each.node}</td>
            <td className="mono">{each.container}</td>
            <td>{time(each.started)}</td>
            <td>{between(each.started, each.finished)}</td>
            <td>{retold(each.exit)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
