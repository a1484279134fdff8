import type { LogMatch } from "../api";

/** How many lines of a level a log has; `more` if the search has not found all. */
export interface LevelCounts {
  error: number;
  warning: number;
  more: boolean;
}

/** Counts the lines of a search for warnings, which finds errors, too. */
export function countLevels(hits: Pick<LogMatch, "level">[], complete: boolean): LevelCounts {
  const error = hits.filter(({ level }) => level === "error").length;
  return { error, warning: hits.length, more: !complete };
}

/** Returns a count as it stands behind the name of a level. */
export function countText(count: number, more: boolean): string {
  return more ? `≥ ${count}` : `${count}`;
}
