// Histograms over all steps, at one step, and as percentiles.

import { Slider } from "antd";
import { lazy, type ReactNode, useMemo, useState } from "react";
import type { EventRun } from "../api";
import { apiUrl } from "../apiClient";
import { ChartHead, PictureMenu } from "../charts/ChartCard";
import { histogramOption, stepsHeatmapOption } from "../charts/histogramOptions";
import { EmptyState } from "../components/EmptyState";
import { currentLanguage, t } from "../language";
import { useDarkMode } from "../theme";
import { usePolling } from "../usePolling";
import { chooseStep, chosenIndex } from "./chosenStep";
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
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const dark = useDarkMode();
  const steps = polled.data?.steps ?? [];
  const stepIndex = chosenIndex(steps, chosenStep);
  const step = steps[stepIndex]?.step ?? 0;
  const pictures = (ofStep?: number): { svg: string; png: string } => {
    const query = { run, tag, theme: dark ? "dark" : "light", language: currentLanguage(), step: ofStep };
    return {
      svg: apiUrl("jobs/{job}/curves/histograms.svg", { job }, query),
      png: apiUrl("jobs/{job}/curves/histograms.png", { job }, query),
    };
  };
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
            <ChartHead title={t("Over all steps")}>
              <PictureMenu label={t("Over all steps")} pictures={pictures()} />
            </ChartHead>
            <EChart label={t("{tag} over all steps", { tag })} option={heatmap} height={300} />
          </section>
          <section className="card">
            <ChartHead title={t("At step {step}", { step })}>
              <PictureMenu label={t("At step {step}", { step })} pictures={pictures(step)} />
            </ChartHead>
            <EChart label={t("{tag} at one step", { tag })} option={histogram} height={260} />
            <Slider
              min={0}
              max={Math.max(1, steps.length - 1)}
              value={stepIndex}
              onChange={(value: number) => setChosenStep(chooseStep(steps, value))}
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
