// The overview: first what the job waits for, or the cause of a failure, then roles, details, hints, outputs and notes.

import type { ReactNode } from "react";
import type { Job, Role } from "../api";
import { type DescriptionItem, DescriptionList } from "../components/DescriptionList";
import { formatDuration, formatMib, formatTime } from "../format";
import { t } from "../language";
import { href } from "../router";
import { FailureCard } from "./FailureCard";

export function OverviewTab({ job }: { job: Job }): ReactNode {
  return (
    <>
      <WaitCard job={job} />
      <FailureCard job={job} />
      <div className="cards">
        <section className="card scroll fit-content">
          <h2>{t("Roles")}</h2>
          <RoleTable job={job} />
        </section>
        <section className="card">
          <h2>{t("Details")}</h2>
          <DescriptionList items={jobDetails(job)} />
        </section>
        {job.hints.length > 0 && (
          <section className="card">
            <h2>{t("Hints")}</h2>
            <ul>
              {job.hints.map((hint) => (
                <li key={hint.text}>{t(hint.template, hint.values)}</li>
              ))}
            </ul>
          </section>
        )}
        {job.outputs.length > 0 && (
          <section className="card">
            <h2>{t("Outputs")}</h2>
            <ul className="mono">
              {job.outputs.map((uri) => (
                <li key={uri}>{uri}</li>
              ))}
            </ul>
          </section>
        )}
        {job.notes.length > 0 && <NoteList job={job} />}
      </div>
    </>
  );
}

function WaitCard({ job }: { job: Job }): ReactNode {
  const { waiting } = job;
  if (!waiting) return null;
  const missing = Object.entries(waiting.missing)
    .map(([role, count]) => `${count} × ${role}`)
    .join(", ");
  return (
    <section className="card waiting" aria-label={t("What the job waits for")}>
      <h2>{t("Waits for containers since {time}: {missing}", { time: formatTime(waiting.since), missing })}</h2>
      {waiting.reasons.length > 0 ? (
        <ul>
          {waiting.reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      ) : (
        <p style={{ margin: 0 }}>
          {t("The engine has not told this page why. This command may know more:")}{" "}
          <code>howdah explain {job.id}</code>
        </p>
      )}
    </section>
  );
}

function RoleTable({ job }: { job: Job }): ReactNode {
  const endStates = (["cancelled", "stopped"] as const).filter((end) => job.roles.some((role) => role[end] > 0));
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{t("Role")}</th>
          <th scope="col" className="align-end">
            {t("Tasks")}
          </th>
          <th scope="col" className="align-end">
            {t("PENDING")}
          </th>
          <th scope="col" className="align-end">
            {t("RUNNING")}
          </th>
          <th scope="col" className="align-end">
            {t("SUCCEEDED")}
          </th>
          <th scope="col" className="align-end">
            {t("FAILED")}
          </th>
          {endStates.map((end) => (
            <th key={end} scope="col" className="align-end">
              {end === "cancelled" ? t("CANCELLED") : t("STOPPED")}
            </th>
          ))}
          <th scope="col">{t("Per task")}</th>
        </tr>
      </thead>
      <tbody>
        {job.roles.map((role) => (
          <tr key={role.name}>
            <td>
              <a href={href(["jobs", job.id, "tasks"], { role: role.name })}>{role.name}</a>
            </td>
            {[role.replicas, role.pending, role.running, role.succeeded, role.failed].map((count, index) => (
              <td key={index} className={`align-end ${index === 4 && count > 0 ? "bad" : ""}`}>
                {count}
              </td>
            ))}
            {endStates.map((end) => (
              <td key={end} className="align-end">
                {role[end]}
              </td>
            ))}
            <td style={{ whiteSpace: "nowrap" }}>{describeResources(role)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function describeResources(role: Role): string {
  const { memory_mib, vcores, gpus } = role.resources;
  return [
    formatMib(Number(memory_mib)),
    vcores ? t("{count} CPU", { count: Number(vcores) }) : "",
    gpus ? t("{count} GPU", { count: Number(gpus) }) : "",
  ]
    .filter(Boolean)
    .join(", ");
}

function jobDetails(job: Job): DescriptionItem[] {
  const waitedFor = job.running && job.started ? formatDuration(job.running - (job.asked || job.started)) : "";
  return [
    [t("Submitted"), job.asked && job.asked < job.started ? formatTime(job.asked) : ""],
    [t("Started"), job.started ? formatTime(job.started) : ""],
    [
      t("All tasks running"),
      job.running ? t("{time}, after {waited}", { time: formatTime(job.running), waited: waitedFor }) : "",
    ],
    [t("Finished"), job.finished ? formatTime(job.finished) : ""],
    [t("Restarts"), job.epoch > 1 ? job.epoch - 1 : ""],
    [t("Resumed from"), job.resumed],
    [t("Master host"), job.host],
    [t("Python"), job.python],
  ];
}

function NoteList({ job }: { job: Job }): ReactNode {
  return (
    <section className="card">
      <h2>{t("Notes")}</h2>
      <ul>
        {job.notes.map((note) => (
          <li key={`${note.time} ${note.text}`}>
            {note.time > 0 && <span className="muted">{formatTime(note.time)} </span>}
            {note.text}
          </li>
        ))}
      </ul>
    </section>
  );
}
