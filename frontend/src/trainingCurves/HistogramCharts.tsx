// Histograms over all steps, at one step, and as percentiles.

import { lazy, type ReactNode, useMemo, useState } from "react";
import type { EventRun } from "../api";
import { apiUrl } from "../apiClient";
import { ChartHead, ExpandButton, ExpandedChart, PictureMenu, type PictureMenuProps } from "../charts/ChartCard";
import { bucketRows, histogramOption, type HistogramStep, stepsHeatmapOption } from "../charts/histogramOptions";
import { EmptyState } from "../components/EmptyState";
import { currentLanguage, t } from "../language";
import { useDarkMode } from "../theme";
import { usePolling } from "../usePolling";
import { chosenIndex } from "./chosenStep";
import { DistributionChart } from "./DistributionChart";
import { StepSlider } from "./StepSlider";
import { type CurveProps, TagPicker, type TagProps } from "./TagPicker";

const EChart = lazy(() => import("../charts/EChart"));

type Files = Omit<PictureMenuProps, "label">;

export default function HistogramCharts(props: CurveProps): ReactNode {
  const tagsOf = (run: EventRun): string[] => run.tags.histogram ?? [];
  return <TagPicker {...props} tagsOf={tagsOf} nothing={t("No histograms yet.")} View={HistogramsOfTag} />;
}

function HistogramsOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/histograms", { job }, { run, tag, steps: 50 }, seconds);
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const dark = useDarkMode();
  const steps = polled.data?.steps ?? [];
  const stepIndex = chosenIndex(steps, chosenStep);
  const step = steps[stepIndex]?.step ?? 0;
  const filesOf = (shown: HistogramStep[], ofStep?: number): Files => {
    const query = { run, tag, theme: dark ? "dark" : "light", language: currentLanguage(), step: ofStep };
    const pictures = {
      svg: apiUrl("jobs/{job}/curves/histograms.svg", { job }, query),
      png: apiUrl("jobs/{job}/curves/histograms.png", { job }, query),
    };
    return { pictures, toRows: () => bucketRows(shown) };
  };
  const heatmap = useMemo(() => stepsHeatmapOption(polled.data?.steps ?? [], dark), [polled.data, dark]);
  const histogram = useMemo(() => histogramOption(polled.data?.steps[stepIndex], dark), [polled.data, stepIndex, dark]);
  if (!steps.length) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <div className="charts">
      <HistogramCard
        title={t("Over all steps")}
        label={t("{tag} over all steps", { tag })}
        option={heatmap}
        height={300}
        files={filesOf(steps)}
      />
      <HistogramCard
        title={t("At step {step}", { step })}
        label={t("{tag} at one step", { tag })}
        option={histogram}
        height={260}
        files={filesOf(steps.slice(stepIndex, stepIndex + 1), step)}
      >
        <StepSlider steps={steps} index={stepIndex} onChoose={setChosenStep} />
      </HistogramCard>
      <DistributionChart job={job} run={run} tag={tag} seconds={seconds} />
    </div>
  );
}

interface HistogramCardProps {
  title: string;
  label: string;
  option: object;
  height: number;
  files: Files;
  children?: ReactNode;
}

/** A chart with its files; its window has what is below the chart, too. */
function HistogramCard({ title, label, option, height, files, children }: HistogramCardProps): ReactNode {
  const [expanded, setExpanded] = useState(false);
  return (
    <section className="card">
      <ChartHead title={title}>
        <ExpandButton label={title} onExpand={() => setExpanded(true)} />
        <PictureMenu label={title} {...files} />
      </ChartHead>
      <EChart label={label} option={option} height={height} />
      {children}
      {expanded && (
        <ExpandedChart label={title} onClose={() => setExpanded(false)}>
          {(expandedHeight) => (
            <>
              <EChart label={label} option={option} height={expandedHeight} />
              {children}
            </>
          )}
        </ExpandedChart>
      )}
    </section>
  );
}
