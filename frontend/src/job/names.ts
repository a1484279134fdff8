// The names of a job's tasks, in the order of rank.

import type { Job } from "../api";

const MOST_ASKED = 64;

export function taskNames(job: Job): string[] {
  return job.roles.flatMap(({ name, replicas }) => Array.from({ length: replicas }, (_, index) => `${name}:${index}`));
}

/** All tasks, or as many as are asked for at once, evenly from each role; the first of each is among them. */
export function spread(job: Job): string[] {
  const most = Math.max(1, Math.floor(MOST_ASKED / Math.max(1, job.roles.length)));
  return job.roles.flatMap(({ name, replicas }) => {
    const count = Math.min(most, replicas);
    return Array.from({ length: count }, (_, at) => `${name}:${Math.floor((at * replicas) / count)}`);
  });
}
