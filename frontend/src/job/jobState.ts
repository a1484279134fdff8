// What the job's own record says of its state.

import type { Job } from "../api";

export function hasEnded(job: Job): boolean {
  return job.finished > 0;
}
