import { type ReactNode, useMemo } from "react";
import type { ApiResponse } from "../api";
import { ChartCard } from "../charts/ChartCard";
import type { ChartLine } from "../charts/chartLines";
import { numberOrNull } from "../charts/histogramOptions";
import { t } from "../language";
import { usePolling } from "../usePolling";
import type { TagProps } from "./TagPicker";

/** Draws the percentiles of a histogram over its steps. */
export function DistributionChart({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/distributions", { job }, { run, tag }, seconds);
  const lines = useMemo(() => percentileLines(polled.data?.steps ?? []), [polled.data]);
  if (!lines.length) return null;
  return (
    <section className="card">
      <ChartCard label={t("Distribution")} lines={lines} axis="step" height={230} />
    </section>
  );
}

/** Makes a line for each percentile. A step without values is a gap in all lines. */
function percentileLines(steps: ApiResponse<"jobs/{job}/curves/distributions">["steps"]): ChartLine[] {
  const x = steps.map(({ step }) => step);
  const percents = steps.find(({ percentiles }) => percentiles.length)?.percentiles.map(([percent]) => percent) ?? [];
  return percents.map((percent, index) => ({
    name: `${percent} %`,
    colour: index,
    x,
    y: steps.map(({ percentiles }) => numberOrNull(percentiles[index]?.[1])),
  }));
}
