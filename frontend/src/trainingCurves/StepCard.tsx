import { type ReactNode, useState } from "react";
import { EmptyState } from "../components/EmptyState";
import { formatTime } from "../format";
import { t } from "../language";
import { chosenIndex } from "./chosenStep";
import { StepSlider } from "./StepSlider";

interface Props<S> {
  steps: S[] | undefined;
  error: Error | undefined;
  /** Returns what is shown of a step; `slider` chooses the step. */
  children: (shown: S, slider: ReactNode) => ReactNode;
}

/** The most steps that a slider has. */
export const MAX_STEPS = 100;

/** A tag at one step, which a slider chooses. */
export function StepCard<S extends { step: number; time: number }>({ steps = [], error, children }: Props<S>): ReactNode {
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const index = chosenIndex(steps, chosenStep);
  const shown = steps[index];
  if (!shown) return <EmptyState text={error ? error.message : t("Loading…")} />;
  const slider = <StepSlider steps={steps} index={index} onChoose={setChosenStep} />;
  return (
    <section className="card">
      <h2>{t("step {step}", { step: shown.step }) + (shown.time ? ` · ${formatTime(shown.time)}` : "")}</h2>
      {slider}
      {children(shown, slider)}
    </section>
  );
}
