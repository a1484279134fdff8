// Precision over recall at one step, which a slider chooses.

import { type ReactNode, useMemo, useState } from "react";
import type { ApiResponse, EventRun } from "../api";
import { ChartCard } from "../charts/ChartCard";
import type { ChartLine } from "../charts/chartLines";
import { numberOrNull } from "../charts/histogramOptions";
import { EmptyState } from "../components/EmptyState";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { chosenIndex } from "./chosenStep";
import { StepSlider } from "./StepSlider";
import { type TagProps, useTagPicker } from "./TagPicker";

interface Props {
  job: string;
  runs: EventRun[];
  seconds: number;
}

const MAX_STEPS = 100;

export default function PrecisionRecallCharts({ job, runs, seconds }: Props): ReactNode {
  const { run, tag, picker } = useTagPicker(runs, (each) => each.tags.pr_curve ?? []);
  if (!tag) return <EmptyState text={t("No PR curves yet.")} />;
  return (
    <>
      {picker}
      <CurveOfTag key={`${run} ${tag}`} job={job} run={run} tag={tag} seconds={seconds} />
    </>
  );
}

type Steps = ApiResponse<"jobs/{job}/curves/pr_curves">["steps"];

function CurveOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/pr_curves", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const [zoom, setZoom] = useState<[from: number, to: number]>();
  const steps: Steps = polled.data?.steps ?? [];
  const shown = steps[chosenIndex(steps, chosenStep)];
  const lines = useMemo(() => (shown ? [toLine(shown)] : []), [shown]);
  if (!shown) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <section className="card">
      <ChartCard
        label={tag}
        lines={lines}
        axis="recall"
        height={320}
        extent={{ x: zoom ?? [0, 1], atLeast: 1 }}
        onSelect={(from, to) => setZoom([from, to])}
        onReset={() => setZoom(undefined)}
        zoomed={zoom !== undefined}
      />
      <p className="muted note">{t("Precision over recall. Each point is a threshold.")}</p>
      <StepSlider steps={steps} index={chosenIndex(steps, chosenStep)} onChoose={setChosenStep} />
    </section>
  );
}

/** Makes the line of one step, by growing recall. */
function toLine({ step, points }: Steps[number]): ChartLine {
  const found = points
    .filter(([recall]) => typeof recall === "number")
    .reverse() // thresholds that grow bring the recall down
    .sort(([a], [b]) => (a as number) - (b as number));
  return {
    name: t("step {step}", { step }),
    colour: 0,
    x: found.map(([recall]) => recall as number),
    y: found.map(([, precision]) => numberOrNull(precision)),
  };
}
