// What the programs of a job do now, or did last: metrics, the use of all tasks, and the end of the chief's log.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { LogTail } from "./LogTail";
import { MetricPreviews } from "./MetricPreviews";
import { chiefTask } from "./resolvedSpec";
import { TaskStrips } from "./TaskStrips";

/** The tasks' samples come every few seconds. */
const POLL_S = 5;

export default function ActivityCards({ job }: { job: Job }): ReactNode {
  const live = !hasEnded(job);
  const tasks = usePolling("jobs/{job}/tasks", { job: job.id }, {}, live ? POLL_S : 0).data?.tasks;
  const chief = chiefTask(job);
  return (
    <div className="activity-cards">
      <div className="usage">
        {tasks ? (
          <>
            <MetricPreviews job={job} tasks={tasks} seconds={live ? POLL_S : 0} />
            {live && <TaskStrips job={job} tasks={tasks} />}
          </>
        ) : (
          <section className="card" style={{ minHeight: 160 }} aria-label={t("Loading…")} />
        )}
      </div>
      {chief && <LogTail key={chief} job={job} task={chief} live={live} />}
    </div>
  );
}
