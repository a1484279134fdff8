// The step that a reader chooses with a slider. While a job runs, steps are added, and left out between others.

/** Returns the index of the step that is nearest to the chosen one; of the last without a choice, -1 without steps. */
export function chosenIndex(steps: { step: number }[], chosen: number | undefined): number {
  if (chosen === undefined) return steps.length - 1;
  const distances = steps.map(({ step }) => Math.abs(step - chosen));
  return distances.indexOf(Math.min(...distances));
}

/** Returns the choice that the step of this index is: none at the last, so that newer steps are shown. */
export function chooseStep(steps: { step: number }[], index: number): number | undefined {
  return index < steps.length - 1 ? steps[index]?.step : undefined;
}
