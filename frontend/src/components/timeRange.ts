// The range of time that a screen shows, kept in the address: `range` (seconds before the end) or `from` and `to`.

import { updateQuery, useRoute } from "../router";

/** From the submission to the moment when all programs run. */
export const START_UP = "startup";

export interface TimeRange {
  /** Unix seconds; a negative number counts from the end. Undefined: from the beginning. */
  from?: number | undefined;
  to?: number | undefined;
  /** The name in the address: START_UP, the seconds before the end, or empty. */
  preset: string;
}

export function useTimeRange(): TimeRange {
  const { query } = useRoute();
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  if (from > 0 && to > from) return { from, to, preset: "" };
  const preset = query.get("range") ?? "";
  const seconds = Number(preset);
  return seconds > 0 ? { from: -seconds, preset } : { preset };
}

export function chooseRange(preset: string): void {
  updateQuery({ range: preset, from: "", to: "" });
}

/** Shows the time between two moments, Unix seconds. */
export function selectRange(from: number, to: number): void {
  updateQuery({ range: "", from: from.toFixed(1), to: to.toFixed(1) });
}
