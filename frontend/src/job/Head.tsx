// What a job is and how far, with what can be done to it.

import { Progress } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { between, duration, percent } from "../format";
import { say } from "../language";
import { SafeLink } from "../shell/SafeLink";
import { StateTag } from "../shell/StateTag";
import { CancelButton } from "./CancelButton";
import { hasEnded } from "./jobState";
import { useMayAct } from "./mayAct";
import { SaveButton } from "./SaveButton";
import { TensorBoardButton } from "./TensorBoardButton";

/** `gone`: the server does not answer, so the state is the last that is known, and nothing can be done. */
export function Head({ job, gone }: { job: Job; gone: boolean }): ReactNode {
  const ended = hasEnded(job);
  const granted = useMayAct(job.id, ended);
  const may = gone ? "no" : granted;
  const unsure = gone && !ended;
  const acts = !ended && Object.keys(job.can).length > 0;
  return (
    <>
      <div className="head">
        <h1>{job.name || job.id}</h1>
        <StateTag
          state={unsure ? "PENDING" : job.state}
          text={unsure ? say("was {state}", { state: say(job.state) }) : undefined}
        />
        <span className="muted">
          {[job.id, job.user, job.queue, job.engine, job.framework].filter(Boolean).join(" · ")}
          {job.started > 0 && ` · ${between(job.started, job.finished)}`}
        </span>
        {!ended && !gone && <How job={job} />}
      </div>
      <div className="row" style={{ marginTop: 6 }}>
        {acts && <SaveButton job={job} may={may === "yes"} />}
        {!acts && job.saves.length > 0 && <SaveButton job={job} may={false} />}
        <TensorBoardButton job={job} may={may === "yes"} />
        {acts && <CancelButton job={job} may={may === "yes"} />}
        {job.links.map((link) => (
          <SafeLink key={`${link.kind} ${link.name} ${link.url}`} url={link.url}>
            {link.name || link.url}
          </SafeLink>
        ))}
      </div>
      {acts && !gone && may !== "yes" && <HowToAct job={job} expired={may === "expired"} />}
    </>
  );
}

function How({ job }: { job: Job }): ReactNode {
  const known = job.progress !== null && job.progress > 0;
  return (
    <span className="row" style={{ minWidth: 260, flexWrap: "nowrap" }}>
      <Progress
        percent={Math.floor(100 * (job.progress ?? 0))}
        format={() => percent(job.progress ?? 0)}
        size="small"
        status="normal"
        aria-label={say("Progress")}
        style={{ width: 190, margin: 0 }}
      />
      {known && job.eta_s !== null && (
        <span className="muted" style={{ whiteSpace: "nowrap" }}>
          {say("about {time} left", { time: duration(job.eta_s) })}
        </span>
      )}
    </span>
  );
}

function HowToAct({ job, expired }: { job: Job; expired: boolean }): ReactNode {
  return (
    <div className="muted" id="how-to-act">
      {expired && say("This link's time to change something is over.")}{" "}
      {say("To change something here, open the link that this command prints:")} <code>howdah page {job.id}</code>
    </div>
  );
}
