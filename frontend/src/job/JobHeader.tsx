// The job's name, state and progress, and the buttons that act on the job.

import { Progress } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { SafeLink } from "../components/SafeLink";
import { StateTag } from "../components/StateTag";
import { formatElapsed, formatDuration, formatPercent } from "../format";
import { t } from "../language";
import { CancelButton } from "./CancelButton";
import { hasEnded } from "./jobState";
import { RunAgainButton } from "./RunAgainButton";
import { SnapshotButton } from "./SnapshotButton";
import { TensorBoardButton } from "./TensorBoardButton";
import { useActionPermission } from "./useActionPermission";

/** `unreachable`: the server does not answer, so the state shown is the last known one and all actions are disabled. */
export function JobHeader({ job, unreachable }: { job: Job; unreachable: boolean }): ReactNode {
  const ended = hasEnded(job);
  const actionPermission = useActionPermission(job.id, ended);
  const permission = unreachable ? "no" : actionPermission;
  const stateUnknown = unreachable && !ended;
  const hasActions = !ended && "cancel" in job.can;
  const showsProgress = !ended && !unreachable && (job.state === "RUNNING" || (job.progress ?? 0) > 0);
  return (
    <>
      <div className="job-top">
        <div className="job-header">
          <h1>{job.name || job.id}</h1>
          <StateTag
            state={stateUnknown ? "PENDING" : job.state}
            text={stateUnknown ? t("was {state}", { state: t(job.state) }) : undefined}
          />
          <span className="muted">
            {[job.id, job.user, job.queue, job.engine, job.framework].filter(Boolean).join(" · ")}
            {job.started > 0 && ` · ${formatElapsed(job.started, job.finished)}`}
          </span>
          {showsProgress && <JobProgress job={job} />}
        </div>
        <div className="row">
          {hasActions && <SnapshotButton job={job} permitted={permission === "yes"} />}
          {!hasActions && job.saves.length > 0 && <SnapshotButton job={job} permitted={false} />}
          <TensorBoardButton job={job} permitted={permission === "yes"} />
          <RunAgainButton job={job} />
          {hasActions && <CancelButton job={job} permitted={permission === "yes"} />}
          {job.links.map((link) => (
            <SafeLink key={`${link.kind} ${link.name} ${link.url}`} url={link.url}>
              {link.name || link.url}
            </SafeLink>
          ))}
        </div>
      </div>
      {hasActions && !unreachable && permission !== "yes" && <HowToAct job={job} expired={permission === "expired"} />}
    </>
  );
}

function JobProgress({ job }: { job: Job }): ReactNode {
  const hasProgress = job.progress !== null && job.progress > 0;
  return (
    <span className="row" style={{ minWidth: 260, flexWrap: "nowrap" }}>
      <Progress
        percent={Math.floor(100 * (job.progress ?? 0))}
        format={() => formatPercent(job.progress ?? 0)}
        size="small"
        status="normal"
        aria-label={t("Progress")}
        style={{ width: 190, margin: 0 }}
      />
      {hasProgress && job.eta_s !== null && (
        <span className="muted" style={{ whiteSpace: "nowrap" }}>
          {t("about {time} left", { time: formatDuration(job.eta_s) })}
        </span>
      )}
    </span>
  );
}

function HowToAct({ job, expired }: { job: Job; expired: boolean }): ReactNode {
  return (
    <div className="muted" id="how-to-act">
      {expired && t("The permission of this link to make changes has expired.")}{" "}
      {t("To make changes, open the link that this command prints:")} <code>howdah page {job.id}</code>
    </div>
  );
}
