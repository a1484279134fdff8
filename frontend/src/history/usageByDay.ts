// What jobs used on each day, for a chart: days without jobs are in it, too.

import type { UserUsage } from "../api";

/** The hours that a chart shows, as the API names them. */
export const HOURS = ["gpu_hours", "cpu_hours", "memory_gib_hours"] as const;
export type Hours = (typeof HOURS)[number];

/** More days than the server has rows for are not filled: a job with a wrong clock would make the axis endless. */
const MAX_DAYS = 5000;
const DAY_MS = 86_400_000;

/** Returns each day from the first to the last with its hours. The rows may come in any order; jobs that have not
 * started have no day. */
export function usageByDay(rows: UserUsage[], hours: Hours): [day: string, value: number][] {
  const values = new Map(rows.filter(({ group }) => group).map((row) => [row.group, row[hours]]));
  const days = [...values.keys()].sort();
  const [first, last] = [days[0], days.at(-1)].map((day) => Date.parse(`${day}T00:00:00Z`));
  if (first === undefined || last === undefined || !((last - first) / DAY_MS <= MAX_DAYS))
    return days.map((day) => [day, values.get(day) ?? 0]);
  const filled: [string, number][] = [];
  for (let at = first; at <= last; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    filled.push([day, values.get(day) ?? 0]);
  }
  return filled;
}
