// Weights and the like over time: how they are spread at each step, and at one of them.

import { Slider } from "antd";
import { lazy, type ReactNode, useMemo, useState } from "react";
import type { Run } from "../api";
import { say } from "../language";
import { usePolled } from "../polling";
import { Nothing } from "../shell/Nothing";
import { useDark } from "../theme";
import { Distributions } from "./Distributions";
import { oneStep, overSteps } from "./histogram";
import { usePick } from "./pick";

const EChart = lazy(() => import("../chart/EChart"));

export default function Histograms({ job, runs, seconds }: { job: string; runs: Run[]; seconds: number }): ReactNode {
  const { run, tag, picker } = usePick(runs, (each) => each.tags.histogram ?? []);
  const polled = usePolled(
    tag ? "jobs/{job}/curves/histograms" : "",
    { job },
    { run, tag, steps: 50 },
    seconds,
  );
  const [chosen, setChosen] = useState<number | null>(null);
  const dark = useDark();
  const steps = polled.data?.steps ?? [];
  const at = Math.min(chosen ?? steps.length - 1, steps.length - 1);
  const all = useMemo(() => overSteps(polled.data?.steps ?? [], dark), [polled.data, dark]);
  const one = useMemo(() => oneStep(polled.data?.steps[at], dark), [polled.data, at, dark]);
  if (!tag) return <Nothing text={say("No histograms yet.")} />;
  return (
    <>
      {picker}
      {!steps.length && <Nothing text={polled.error ? polled.error.message : say("Loading…")} />}
      {steps.length > 0 && (
        <div className="charts">
          <section className="card">
            <h2>{say("Over all steps")}</h2>
            <EChart label={say("{tag} over all steps", { tag })} option={all} height={300} />
          </section>
          <section className="card">
            <h2>{say("At step {step}", { step: steps[at]?.step ?? 0 })}</h2>
            <EChart label={say("{tag} at one step", { tag })} option={one} height={260} />
            <Slider
              min={0}
              max={Math.max(1, steps.length - 1)}
              value={at}
              onChange={(value: number) => setChosen(value)}
              ariaLabelForHandle={say("Step")}
              tooltip={{ open: false }}
            />
          </section>
          <Distributions job={job} run={run} tag={tag} seconds={seconds} />
        </div>
      )}
    </>
  );
}
