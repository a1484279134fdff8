// A slider over the steps of a tag.

import { Slider } from "antd";
import type { ReactNode } from "react";
import { t } from "../language";
import { chooseStep } from "./chosenStep";

interface Props {
  steps: { step: number }[];
  index: number;
  /** Called with the chosen step; with undefined for the newest one. */
  onChoose: (step: number | undefined) => void;
}

export function StepSlider({ steps, index, onChoose }: Props): ReactNode {
  if (steps.length < 2) return null;
  return (
    <Slider
      min={0}
      max={steps.length - 1}
      value={index}
      onChange={(value: number) => onChoose(chooseStep(steps, value))}
      ariaLabelForHandle={t("Step")}
      tooltip={{ open: false }}
      style={{ margin: "4px 8px" }}
    />
  );
}
