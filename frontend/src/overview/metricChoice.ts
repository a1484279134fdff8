// Chooses the metrics that the overview shows.

import type { Task } from "../api";

export const MAX_METRICS = 4;

/** Parts of names that people look for first, in order. */
const INTERESTING = [/loss/i, /acc|auc|f1|perplexity|bleu|reward/i, /err/i, /learning|lr\b|rate/i];

/** A metric and the task whose line is shown: the first, in order of rank, that reports it. */
export interface ChosenMetric {
  name: string;
  task: string;
}

export function chooseMetrics(tasks: Pick<Task, "task" | "metrics">[]): ChosenMetric[] {
  const sources = new Map<string, string>();
  for (const { task, metrics } of tasks)
    for (const name of Object.keys(metrics)) if (!sources.has(name)) sources.set(name, task);
  return sortByInterest([...sources.keys()])
    .slice(0, MAX_METRICS)
    .map((name) => ({ name, task: sources.get(name) as string }));
}

/** Returns the names with the interesting ones first, else in the order given. */
export function sortByInterest(names: string[]): string[] {
  const order = (name: string): number => {
    const found = INTERESTING.findIndex((pattern) => pattern.test(name));
    return found < 0 ? INTERESTING.length : found;
  };
  return [...names].sort((one, other) => order(one) - order(other));
}
