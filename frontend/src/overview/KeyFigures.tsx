// The figures that people look for first: outcome, progress, tasks, time, GPU hours, restarts.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { StateTag } from "../components/StateTag";
import { formatAmount, formatDuration, formatPercent, formatTime } from "../format";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { countStates, StateCounts } from "./StateCounts";

export function KeyFigures({ job }: { job: Job }): ReactNode {
  const ended = hasEnded(job);
  const gpus = job.roles.reduce((sum, { replicas, resources }) => sum + replicas * Number(resources.gpus ?? 0), 0);
  return (
    <section className="card" aria-label={t("Key figures")}>
      <dl className="key-figures">
        {ended && (
          <Figure name={t("Outcome")} value={<StateTag state={job.state} />}>
            {formatTime(job.finished)}
          </Figure>
        )}
        {job.progress > 0 && job.state !== "SUCCEEDED" && <ProgressFigure job={job} ended={ended} />}
        <Figure name={t("Tasks")} value={job.roles.reduce((sum, { replicas }) => sum + replicas, 0)}>
          <StateCounts counts={countStates(job.roles)} />
        </Figure>
        <TimeFigure job={job} />
        {gpus > 0 && (
          <Figure name={t("GPU hours")} value={formatAmount(job.gpu_hours)}>
            {t("{count} GPU", { count: gpus })}
          </Figure>
        )}
        {job.epoch > 1 && <Figure name={t("Restarts")} value={job.epoch - 1} />}
      </dl>
    </section>
  );
}

function Figure({ name, value, children }: { name: string; value: ReactNode; children?: ReactNode }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="value">{value}</dd>
      {children && <dd className="muted">{children}</dd>}
    </div>
  );
}

function ProgressFigure({ job, ended }: { job: Job; ended: boolean }): ReactNode {
  const left = job.eta_s;
  return (
    <Figure name={t("Progress")} value={formatPercent(job.progress)}>
      {!ended && left !== null && (
        <>
          {t("about {time} left", { time: formatDuration(left) })}
          <br />
          {t("ends at about {time}", { time: formatEnd(left) })}
        </>
      )}
    </Figure>
  );
}

/** Formats the time in `left` seconds, to the minute. */
function formatEnd(left: number): string {
  return formatTime(Date.now() / 1000 + left).slice(0, -3);
}

/** The time since the submission: how much of it the job waited until all its tasks ran, and how much it ran. */
function TimeFigure({ job }: { job: Job }): ReactNode {
  if (!(job.asked || job.started)) return null;
  const { waited, ran } = splitTime(job);
  const times = { waited: formatDuration(waited), ran: formatDuration(ran) };
  return (
    <Figure name={t("Time since submission")} value={formatDuration(Math.round(waited + ran))}>
      <span className="share-bar" aria-hidden="true">
        <span style={{ flexGrow: waited }} className="waited" />
        <span style={{ flexGrow: ran }} className="ran" />
      </span>
      {job.running ? t("waited {waited}, ran {ran}", times) : t("waited {waited}, has not run", times)}
    </Figure>
  );
}

/** Returns for how many seconds the job has waited and run, up to its end or now. */
function splitTime({ asked, started, running, finished }: Job): { waited: number; ran: number } {
  const submitted = asked || started;
  const total = Math.max(0, (finished || Date.now() / 1000) - submitted);
  const waited = Math.min(total, running ? Math.max(0, running - submitted) : total);
  return { waited, ran: total - waited };
}
