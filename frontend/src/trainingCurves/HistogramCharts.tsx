// Histograms over all steps, at one step, and as percentiles.

import { Slider } from "antd";
import { lazy, type ReactNode, useMemo, useState } from "react";
import type { EventRun } from "../api";
import { histogramOption, stepsHeatmapOption } from "../charts/histogramOptions";
import { EmptyState } from "../components/EmptyState";
import { t } from "../language";
import { useDarkMode } from "../theme";
import { usePolling } from "../usePolling";
import { DistributionChart } from "./DistributionChart";
import { useTagPicker } from "./TagPicker";

const EChart = lazy(() => import("../charts/EChart"));

export default function HistogramCharts({
  job,
  runs,
  seconds,
}: {
  job: string;
  runs: EventRun[];
  seconds: number;
}): ReactNode {
  const { run, tag, picker } = useTagPicker(runs, (each) => each.tags.histogram ?? []);
  const polled = usePolling(tag ? "jobs/{job}/curves/histograms" : "", { job }, { run, tag, steps: 50 }, seconds);
  const [chosenIndex, setChosenIndex] = useState<number | null>(null);
  const dark = useDarkMode();
  const steps = polled.data?.steps ?? [];
  const stepIndex = Math.min(chosenIndex ?? steps.length - 1, steps.length - 1);
  const heatmap = useMemo(() => stepsHeatmapOption(polled.data?.steps ?? [], dark), [polled.data, dark]);
  const histogram = useMemo(() => histogramOption(polled.data?.steps[stepIndex], dark), [polled.data, stepIndex, dark]);
  if (!tag) return <EmptyState text={t("No histograms yet.")} />;
  return (
    <>
      {picker}
      {!steps.length && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {steps.length > 0 && (
        <div className="charts">
          <section className="card">
            <h2>{t("Over all steps")}</h2>
            <EChart label={t("{tag} over all steps", { tag })} option={heatmap} height={300} />
          </section>
          <section className="card">
            <h2>{t("At step {step}", { step: steps[stepIndex]?.step ?? 0 })}</h2>
            <EChart label={t("{tag} at one step", { tag })} option={histogram} height={260} />
            <Slider
              min={0}
              max={Math.max(1, steps.length - 1)}
              value={stepIndex}
              onChange={(value: number) => setChosenIndex(value)}
              ariaLabelForHandle={t("Step")}
              tooltip={{ open: false }}
            />
          </section>
          <DistributionChart job={job} run={run} tag={tag} seconds={seconds} />
        </div>
      )}
    </>
  );
}
