// Precision over recall at one step, which a slider chooses.

import { type ReactNode, useMemo, useState } from "react";
import type { ApiResponse } from "../api";
import { ChartCard } from "../charts/ChartCard";
import type { ChartLine } from "../charts/chartLines";
import { numberOrNull } from "../charts/histogramOptions";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { MAX_STEPS, StepCard } from "./StepCard";
import { type CurveProps, TagPicker, type TagProps } from "./TagPicker";

export default function PrecisionRecallCharts(props: CurveProps): ReactNode {
  return <TagPicker {...props} tagsOf={(each) => each.tags.pr_curve ?? []} nothing={t("No PR curves yet.")} View={CurvesOfTag} />;
}

function CurvesOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const { data, error } = usePolling("jobs/{job}/curves/pr_curves", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  return (
    <StepCard steps={data?.steps} error={error}>
      {(shown, slider) => <Curve tag={tag} shown={shown} slider={slider} />}
    </StepCard>
  );
}

type Step = ApiResponse<"jobs/{job}/curves/pr_curves">["steps"][number];

function Curve({ tag, shown, slider }: { tag: string; shown: Step; slider: ReactNode }): ReactNode {
  const [zoom, setZoom] = useState<[from: number, to: number]>();
  const lines = useMemo(() => [toLine(shown)], [shown]);
  return (
    <>
      <ChartCard
        label={tag}
        lines={lines}
        axis="recall"
        height={320}
        extent={{ x: zoom ?? [0, 1], atLeast: 1 }}
        onSelect={(from, to) => setZoom([from, to])}
        onReset={() => setZoom(undefined)}
        zoomed={zoom !== undefined}
        controls={slider}
      />
      <p className="muted note">{t("Precision over recall. Each point is a threshold.")}</p>
    </>
  );
}

/** Makes the line of one step, by growing recall. */
function toLine({ step, points }: Step): ChartLine {
  const found = points
    .filter(([recall]) => typeof recall === "number")
    .reverse() // thresholds that grow bring the recall down
    .sort(([a], [b]) => (a as number) - (b as number));
  return {
    name: t("step {step}", { step }),
    colour: 0,
    x: found.map(([recall]) => recall as number),
    y: found.map(([, precision]) => numberOrNull(precision)),
    thresholds: found.map(([, , threshold]) => threshold),
  };
}
