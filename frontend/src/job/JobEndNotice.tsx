// The job's own server ends with the job: this notice links to the job's page in the history.

import type { ReactNode } from "react";
import type { Job, ServerInfo } from "../api";
import { formatTime } from "../format";
import { t } from "../language";
import { href, useRoute } from "../router";
import { hasEnded } from "./jobState";

interface Props {
  job: Job;
  server: ServerInfo;
  /** The server does not answer any more. */
  unreachable: boolean;
  /** When the server answered last, Unix seconds. */
  lastAnswerAt: number;
}

export function JobEndNotice({ job, server, unreachable, lastAnswerAt }: Props): ReactNode {
  const { path, query } = useRoute();
  const place = path[0] === "jobs" ? href(path, Object.fromEntries(query)) : href(["jobs", job.id]);
  return (
    <div className="notice" role="status">
      {noticeText(unreachable, hasEnded(job), formatTime(lastAnswerAt))}{" "}
      {server.history ? (
        <a href={server.history + place}>{t("The job's page in the history")}</a>
      ) : (
        <>
          {t("This command prints a link to the job's page in the history:")} <code>howdah page {job.id}</code>
        </>
      )}
    </div>
  );
}

function noticeText(unreachable: boolean, ended: boolean, when: string): string {
  if (!unreachable) return t("The job has ended; this page closes soon.");
  if (ended) return t("The job and its server have ended. This page shows the state at {time}.", { time: when });
  return t("The job's server cannot be reached since {time}; the job may have ended.", { time: when });
}
