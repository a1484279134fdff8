// Finds the task that differs most from the other tasks of its role.

/** Fewer tasks of a role are not compared. */
const MIN_TASKS = 3;
/** The least difference from the median that counts, as a share of the whole. */
const MIN_DIFFERENCE = 0.2;
/** How many times the usual difference from the median the odd task's must be. */
const MIN_RATIO = 5;

export interface MeasuredTask {
  role: string;
  /** A share, 0 to 1; null if nothing was measured. */
  value: number | null;
}

export interface OddTask {
  index: number;
  /** The median of the task's role. */
  median: number;
}

/** Returns the task that differs most from the median of its role, null if all are alike. */
export function findOddTask(tasks: MeasuredTask[]): OddTask | null {
  let found: (OddTask & { difference: number }) | null = null;
  for (const role of new Set(tasks.map((task) => task.role))) {
    const members = tasks.flatMap((task, index) =>
      task.role === role && task.value !== null ? [{ index, value: task.value }] : [],
    );
    if (members.length < MIN_TASKS) continue;
    const middle = median(members.map(({ value }) => value)) as number;
    const usual = median(members.map(({ value }) => Math.abs(value - middle))) as number;
    for (const { index, value } of members) {
      const difference = Math.abs(value - middle);
      if (difference < Math.max(MIN_DIFFERENCE, MIN_RATIO * usual)) continue;
      if (!found || difference > found.difference) found = { index, median: middle, difference };
    }
  }
  return found && { index: found.index, median: found.median };
}

/** Returns the median; null of nothing. */
export function median(values: number[]): number | null {
  if (!values.length) return null;
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}
