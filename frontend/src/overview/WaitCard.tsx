// What a job waits for: the containers, the queue, since when, and why as far as the engine tells.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";

export function WaitCard({ job }: { job: Job }): ReactNode {
  const { waiting } = job;
  if (!waiting) return null;
  const missing = Object.entries(waiting.missing)
    .map(([role, count]) => `${count} × ${role}`)
    .join(", ");
  return (
    <section className="card waiting" aria-label={t("What the job waits for")}>
      <h2>{t("Waits for containers since {time}: {missing}", { time: formatTime(waiting.since), missing })}</h2>
      <p>{describePlace(job, waiting.since)}</p>
      {waiting.reasons.length > 0 ? (
        <ul>
          {waiting.reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      ) : (
        <p>
          {t("The engine has not told this page why. This command may know more:")}{" "}
          <code>howdah explain {job.id}</code>
        </p>
      )}
    </section>
  );
}

function describePlace({ queue, engine, roles }: Job, since: number): string {
  const values = {
    queue,
    engine,
    time: formatDuration(Math.max(0, Math.round(Date.now() / 1000 - since))),
    running: roles.reduce((sum, role) => sum + role.running, 0),
    all: roles.reduce((sum, role) => sum + role.replicas, 0),
  };
  return queue
    ? t("In queue {queue} of {engine}, for {time} so far. {running} of {all} tasks run.", values)
    : t("On {engine}, for {time} so far. {running} of {all} tasks run.", values);
}
