// Lists the names of a job's tasks, in the order of rank, and shortens such lists.

import type { Job } from "../api";

export const MAX_TASKS_PER_REQUEST = 64;

export function taskNames(job: Job): string[] {
  return job.roles.flatMap(({ name, replicas }) => Array.from({ length: replicas }, (_, index) => `${name}:${index}`));
}

/** Returns all tasks, or as many as one request may name, evenly from each role and with the first task of each. */
export function sampleTasks(job: Job): string[] {
  const perRole = Math.max(1, Math.floor(MAX_TASKS_PER_REQUEST / Math.max(1, job.roles.length)));
  return job.roles.flatMap(({ name, replicas }) => {
    const count = Math.min(perRole, replicas);
    return Array.from({ length: count }, (_, index) => `${name}:${Math.floor((index * replicas) / count)}`);
  });
}

/** Writes tasks as ranges, as the search of logs takes them: `worker:0-7, worker:9`. */
export function compactTaskNames(tasks: string[]): string {
  const ranges: { role: string; first: number; last: number }[] = [];
  for (const task of tasks) {
    const colon = task.lastIndexOf(":");
    const [role, index] = [task.slice(0, colon), Number(task.slice(colon + 1))];
    const newest = ranges.at(-1);
    if (newest?.role === role && newest.last === index - 1) newest.last = index;
    else ranges.push({ role, first: index, last: index });
  }
  return ranges.map(({ role, first, last }) => `${role}:${first}${last > first ? `-${last}` : ""}`).join(", ");
}
