// What an edit of a job's annotation changes. Only that is sent: tags that are sent stand in place of those of the job
// file from then on.

import type { ActionBody, JobRow } from "../api";

export type Draft = Pick<JobRow, "note" | "tags" | "archived">;
export type Changes = Partial<ActionBody<"annotate">>;

export function changesOf(begun: Draft, draft: Draft): Changes {
  const changes: Changes = {};
  if (draft.note !== begun.note) changes.note = draft.note;
  if (JSON.stringify(draft.tags) !== JSON.stringify(begun.tags)) changes.tags = draft.tags;
  if (draft.archived !== begun.archived) changes.archived = draft.archived;
  return changes;
}
