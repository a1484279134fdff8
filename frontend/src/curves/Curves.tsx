// What the programs have told of their learning: curves, distributions, pictures, text; and what lies in checkpoints.

import { Segmented } from "antd";
import { lazy, type ReactNode } from "react";
import type { Job } from "../api";
import { hasEnded } from "../job/jobState";
import { say } from "../language";
import { usePolled } from "../polling";
import { go, useRoute } from "../route";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { RunErrors } from "./RunErrors";
import { Scalars } from "./Scalars";

const Histograms = lazy(() => import("./Histograms"));
const Samples = lazy(() => import("./Samples"));
const HyperParameters = lazy(() => import("./HyperParameters"));
const Checkpoints = lazy(() => import("./Checkpoints"));

/** `others`: whether other jobs can be looked at beside this one. */
export default function Curves({ job, others }: { job: Job; others: boolean }): ReactNode {
  const { path } = useRoute();
  const kind = path[3] ?? "scalars";
  const kinds = [
    { value: "scalars", label: say("Curves") },
    { value: "histograms", label: say("Histograms") },
    { value: "images", label: say("Images") },
    { value: "text", label: say("Text") },
    { value: "hparams", label: say("Hyperparameters") },
    { value: "checkpoints", label: say("Checkpoints") },
  ];
  return (
    <>
      <Segmented
        aria-label={say("Kind")}
        className="wraps"
        value={kind}
        options={kinds}
        onChange={(value) => go(["jobs", job.id, "curves", value])}
        style={{ marginBottom: 10 }}
      />
      {kind === "checkpoints" ? <Checkpoints job={job} /> : <OfRuns job={job} kind={kind} others={others} />}
    </>
  );
}

function OfRuns({ job, kind, others }: { job: Job; kind: string; others: boolean }): ReactNode {
  const live = !hasEnded(job);
  const polled = usePolled("jobs/{job}/curves/runs", { job: job.id }, {}, live ? 2 : 10);
  const runs = polled.data?.runs;
  const waits = runs ? "" : polled.error ? polled.error.message : say("Reading event files…");
  if (!runs && kind !== "scalars") return <Nothing text={waits} />;
  const seconds = live || polled.data?.complete === false ? 2 : 0;
  return (
    <>
      {runs && <Stale polled={polled} />}
      {polled.data?.complete === false && <p className="muted">{say("Still reading event files…")}</p>}
      <RunErrors errors={polled.data?.errors ?? []} />
      {kind === "scalars" && <Scalars job={job} runs={runs ?? []} seconds={seconds} others={others} waits={waits} />}
      {runs && kind === "histograms" && <Histograms job={job.id} runs={runs} seconds={seconds} />}
      {runs && (kind === "images" || kind === "text") && (
        <Samples job={job.id} runs={runs} seconds={seconds} kind={kind} />
      )}
      {kind === "hparams" && <HyperParameters job={job.id} seconds={seconds} />}
    </>
  );
}
