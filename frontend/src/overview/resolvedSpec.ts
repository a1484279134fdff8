// The parts of a job's resolved spec that the overview shows. Keys are those of a job file; defaults are left out.

import type { Job } from "../api";

export interface ResolvedRole {
  command?: string | string[];
  env?: Record<string, string>;
  tracked?: boolean;
}

export interface ResolvedInput {
  path: string | string[];
  to?: string;
  roles?: string[];
}

interface ResolvedOutput {
  path: string;
}

interface ResolvedSpec {
  roles?: Record<string, ResolvedRole>;
  inputs?: ResolvedInput[];
  outputs?: ResolvedOutput[];
  checkpoint?: { path?: string };
  board?: { path?: string };
}

/** Words that a shell takes as they are. */
const PLAIN_WORD = /^[\w@%+=:,./*-]+$/;

/** Returns a command as a line for a shell. */
export function formatCommand(command: string | string[] = ""): string {
  return Array.isArray(command) ? command.map(quoteWord).join(" ") : command;
}

function quoteWord(word: string): string {
  return PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function resolvedSpec(job: Job): ResolvedSpec {
  return job.resolved;
}

/** Roles whose task 0 leads, in order, as in howdah.spec.task. */
const CHIEFS = ["chief", "master", "worker"];

/** Returns the task that leads the job; "" for a job without roles. */
export function chiefTask(job: Job): string {
  const roles = resolvedSpec(job).roles ?? {};
  const names = job.roles.map(({ name }) => name);
  const tracked = names.filter((name) => roles[name]?.tracked !== false);
  const candidates = tracked.length ? tracked : names;
  const role = CHIEFS.find((name) => candidates.includes(name)) ?? candidates[0];
  return role ? `${role}:0` : "";
}
