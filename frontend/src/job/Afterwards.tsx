// At the job's end its own server goes: where its page lives on.

import type { ReactNode } from "react";
import type { Job, Server } from "../api";
import { time } from "../format";
import { say } from "../language";
import { href, useRoute } from "../route";
import { hasEnded } from "./jobState";

interface Props {
  job: Job;
  server: Server;
  /** The server does not answer any more. */
  gone: boolean;
  /** When it answered last. */
  at: number;
}

export function Afterwards({ job, server, gone, at }: Props): ReactNode {
  const { path, query } = useRoute();
  const place = path[0] === "jobs" ? href(path, Object.fromEntries(query)) : href(["jobs", job.id]);
  return (
    <div className="stale" role="status">
      {sentence(gone, hasEnded(job), time(at))}{" "}
      {server.history ? (
        <a href={server.history + place}>{say("Its page in the history")}</a>
      ) : (
        <>
          {say("This command prints a link to its page in the history:")} <code>howdah page {job.id}</code>
        </>
      )}
    </div>
  );
}

function sentence(gone: boolean, ended: boolean, when: string): string {
  if (!gone) return say("The job has ended; this page closes soon.");
  if (ended) return say("The job and its server have ended. This was read at {time}.", { time: when });
  return say("The job's server cannot be reached since {time}; the job may have ended.", { time: when });
}
