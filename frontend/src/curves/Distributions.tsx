import { type ReactNode, useMemo } from "react";
import type { Answer } from "../api";
import { LineChart } from "../chart/LineChart";
import type { Line } from "../chart/lines";
import { say } from "../language";
import { usePolled } from "../polling";
import { numeric } from "./histogram";

/** Percentiles of a histogram over its steps. */
export function Distributions({
  job,
  run,
  tag,
  seconds,
}: {
  job: string;
  run: string;
  tag: string;
  seconds: number;
}): ReactNode {
  const polled = usePolled("jobs/{job}/curves/distributions", { job }, { run, tag }, seconds);
  const lines = useMemo(() => linesOf(polled.data?.steps ?? []), [polled.data]);
  if (!lines.length) return null;
  return (
    <section className="card">
      <h2>{say("Distribution")}</h2>
      <LineChart label={say("Distribution")} lines={lines} axis="step" height={230} />
    </section>
  );
}

/** A line for each percentile; a step that had nothing to count has a gap in all. */
function linesOf(steps: Answer<"jobs/{job}/curves/distributions">["steps"]): Line[] {
  const x = steps.map(({ step }) => step);
  const percents = steps.find(({ percentiles }) => percentiles.length)?.percentiles.map(([percent]) => percent) ?? [];
  return percents.map((percent, index) => ({
    name: `${percent} %`,
    colour: index,
    x,
    y: steps.map(({ percentiles }) => numeric(percentiles[index]?.[1])),
  }));
}
