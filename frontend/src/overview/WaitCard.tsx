// What a job waits for: the containers, since when, and why as far as the engine tells.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { formatTime } from "../format";
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
