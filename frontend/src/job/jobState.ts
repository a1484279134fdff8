// Answers questions about a job's state.

import type { Job } from "../api";

export function hasEnded(job: Job): boolean {
  return job.finished > 0;
}
