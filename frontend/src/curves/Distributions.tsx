import { type ReactNode, useMemo } from "react";
import type { Distributions as DistributionsAnswer } from "../api";
import { LineChart } from "../chart/LineChart";
import { jobPath } from "../client";
import { say } from "../language";
import { usePolled } from "../polling";

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
  const polled = usePolled<DistributionsAnswer>(jobPath(job, "curves/distributions"), { run, tag }, seconds);
  const lines = useMemo(() => {
    const { percentiles = [], steps = [] } = polled.data ?? {};
    const x = steps.map(({ step }) => step);
    return percentiles.map((percentile, index) => ({
      name: `${percentile} %`,
      colour: index,
      x,
      y: steps.map(({ values }) => values[index] ?? null),
    }));
  }, [polled.data]);
  if (!lines.length) return null;
  return (
    <section className="card">
      <h2>{say("Distribution")}</h2>
      <LineChart label={say("Distribution")} lines={lines} axis="step" height={230} />
    </section>
  );
}
