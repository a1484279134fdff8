// The first look: what went wrong before all else, then who runs, what to mind, what came out.

import type { ReactNode } from "react";
import type { Job, Role } from "../api";
import { duration, mib, time } from "../format";
import { say } from "../language";
import { english, retold } from "../retold";
import { href } from "../route";
import { type Fact, Facts } from "../shell/Facts";

export function Overview({ job }: { job: Job }): ReactNode {
  return (
    <>
      <FailureCard job={job} />
      <div className="cards">
        <section className="card scroll whole">
          <h2>{say("Roles")}</h2>
          <Roles job={job} />
        </section>
        <section className="card">
          <h2>{say("Times and places")}</h2>
          <Facts facts={facts(job)} />
        </section>
        {job.hints.length > 0 && (
          <section className="card">
            <h2>{say("Hints")}</h2>
            <ul>
              {job.hints.map((hint) => (
                <li key={hint.text}>{say(hint.template, hint.values)}</li>
              ))}
            </ul>
          </section>
        )}
        {job.outputs.length > 0 && (
          <section className="card">
            <h2>{say("Outputs")}</h2>
            <ul className="mono">
              {job.outputs.map((uri) => (
                <li key={uri}>{uri}</li>
              ))}
            </ul>
          </section>
        )}
        {job.notes.length > 0 && <Notes job={job} />}
      </div>
    </>
  );
}

function FailureCard({ job }: { job: Job }): ReactNode {
  const { failure, diagnostics } = job;
  if (!failure && (!diagnostics || job.state === "SUCCEEDED")) return null;
  return (
    <section className={`card failure ${job.state}`} aria-label={say("What went wrong")}>
      <h2>
        {failure ? (
          <>
            <a href={href(["jobs", job.id, "tasks", failure.task])}>{failure.task}</a>{" "}
            {say("on {node}: {exit}", { node: failure.node, exit: retold(failure.exit) })}
          </>
        ) : job.state === "FAILED" ? (
          say("What went wrong")
        ) : (
          say("Diagnostics")
        )}
      </h2>
      {diagnostics && <p style={{ margin: "0 0 6px", overflowWrap: "anywhere" }}>{retold(diagnostics)}</p>}
      {failure && failure.lines.length > 0 && (
        <pre className="text" tabIndex={0} style={{ maxHeight: 280 }}>
          {failure.lines.join("\n")}
        </pre>
      )}
      {failure && (
        <a href={href(["jobs", job.id, "logs"], { task: failure.task, stream: "both" })}>{say("Its logs")}</a>
      )}
    </section>
  );
}

function Roles({ job }: { job: Job }): ReactNode {
  const ends = (["cancelled", "stopped"] as const).filter((end) => job.roles.some((role) => role[end] > 0));
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{say("Role")}</th>
          <th scope="col" className="end">
            {say("Tasks")}
          </th>
          <th scope="col" className="end">
            {say("PENDING")}
          </th>
          <th scope="col" className="end">
            {say("RUNNING")}
          </th>
          <th scope="col" className="end">
            {say("SUCCEEDED")}
          </th>
          <th scope="col" className="end">
            {say("FAILED")}
          </th>
          {ends.map((end) => (
            <th key={end} scope="col" className="end">
              {end === "cancelled" ? say("CANCELLED") : say("STOPPED")}
            </th>
          ))}
          <th scope="col">{say("Each")}</th>
        </tr>
      </thead>
      <tbody>
        {job.roles.map((role) => (
          <tr key={role.name}>
            <td>
              <a href={href(["jobs", job.id, "tasks"], { role: role.name })}>{role.name}</a>
            </td>
            {[role.replicas, role.pending, role.running, role.succeeded, role.failed].map((count, index) => (
              
              <td key={index} className={`end ${index === 4 && count > 0 ? "bad" : ""}`}>
                {count}
              </td>
            ))}
            {ends.map((end) => (
              <td key={end} className="end">
                {role[end]}
              </td>
            ))}
            <td style={{ whiteSpace: "nowrap" }}>{size(role)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function size(role: Role): string {
  const { memory_mib, vcores, gpus } = role.resources;
  return [
    mib(Number(memory_mib)),
    vcores ? say("{count} CPU", { count: Number(vcores) }) : "",
    gpus ? say("{count} GPU", { count: Number(gpus) }) : "",
  ]
    .filter(Boolean)
    .join(", ");
}

function facts(job: Job): Fact[] {
  const waited = job.running && job.started ? duration(job.running - (job.asked || job.started)) : "";
  return [
    [say("Submitted"), job.asked && job.asked < job.started ? time(job.asked) : ""],
    [say("Started"), job.started ? time(job.started) : ""],
    [say("All ran"), job.running ? say("{time}, after {waited}", { time: time(job.running), waited }) : ""],
    [say("Finished"), job.finished ? time(job.finished) : ""],
    [say("Restarts"), job.epoch > 1 ? job.epoch - 1 : ""],
    [say("Went on from"), job.resumed],
    [say("Master on"), job.host],
    [say("Python"), job.python],
  ];
}

function Notes({ job }: { job: Job }): ReactNode {
  return (
    <section className="card">
      <h2>{say("Notes")}</h2>
      <ul>
        {job.notes.map((note) => (
          <li key={`${note.time} ${english(note.text)}`}>
            {note.time > 0 && <span className="muted">{time(note.time)} </span>}
            {retold(note.text)}
          </li>
        ))}
      </ul>
    </section>
  );
}
