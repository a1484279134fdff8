// The contents of event files (scalars, histograms, images, audio, PR curves, text, hyperparameters) and the job's
// checkpoints.

import { Segmented } from "antd";
import { lazy, type ReactNode } from "react";
import type { Job } from "../api";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { navigate, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { EventFileErrors } from "./EventFileErrors";
import { ScalarCharts } from "./ScalarCharts";

const HistogramCharts = lazy(() => import("./HistogramCharts"));
const ImageSteps = lazy(() => import("./ImageSteps"));
const AudioSteps = lazy(() => import("./AudioSteps"));
const PrecisionRecallCharts = lazy(() => import("./PrecisionRecallCharts"));
const TextSteps = lazy(() => import("./TextSteps"));
const HyperparameterTable = lazy(() => import("./HyperparameterTable"));
const Checkpoints = lazy(() => import("../checkpoints/Checkpoints"));

/** `canCompare`: whether the server knows other jobs to compare with. */
export default function TrainingCurvesTab({ job, canCompare }: { job: Job; canCompare: boolean }): ReactNode {
  const { path } = useRoute();
  const kind = path[3] ?? "scalars";
  const kinds = [
    { value: "scalars", label: t("Scalars") },
    { value: "histograms", label: t("Histograms") },
    { value: "images", label: t("Images") },
    { value: "audio", label: t("Audio") },
    { value: "pr", label: t("PR curves") },
    { value: "text", label: t("Text") },
    { value: "hparams", label: t("Hyperparameters") },
    { value: "checkpoints", label: t("Checkpoints") },
  ];
  return (
    <>
      <Segmented
        aria-label={t("Kind")}
        className="wrapping"
        value={kind}
        options={kinds}
        onChange={(value) => navigate(["jobs", job.id, "curves", value])}
        style={{ marginBottom: 10 }}
      />
      {kind === "checkpoints" ? (
        <Checkpoints job={job} />
      ) : (
        <EventFileView job={job} kind={kind} canCompare={canCompare} />
      )}
    </>
  );
}

function EventFileView({ job, kind, canCompare }: { job: Job; kind: string; canCompare: boolean }): ReactNode {
  const live = !hasEnded(job);
  const polled = usePolling("jobs/{job}/curves/runs", { job: job.id }, {}, live ? 2 : 10);
  const runs = polled.data?.runs;
  const waitMessage = runs ? "" : polled.error ? polled.error.message : t("Reading event files…");
  if (!runs && kind !== "scalars") return <EmptyState text={waitMessage} />;
  const seconds = live || polled.data?.complete === false ? 2 : 0;
  return (
    <>
      {runs && <StaleNotice polled={polled} />}
      {polled.data?.complete === false && <p className="muted">{t("Still reading event files…")}</p>}
      <EventFileErrors errors={polled.data?.errors ?? []} />
      {kind === "scalars" && (
        <ScalarCharts job={job} runs={runs ?? []} seconds={seconds} canCompare={canCompare} waitMessage={waitMessage} />
      )}
      {runs && kind === "histograms" && <HistogramCharts job={job.id} runs={runs} seconds={seconds} />}
      {runs && kind === "images" && <ImageSteps job={job.id} runs={runs} seconds={seconds} />}
      {runs && kind === "audio" && <AudioSteps job={job.id} runs={runs} seconds={seconds} />}
      {runs && kind === "pr" && <PrecisionRecallCharts job={job.id} runs={runs} seconds={seconds} />}
      {runs && kind === "text" && <TextSteps job={job.id} runs={runs} seconds={seconds} />}
      {kind === "hparams" && <HyperparameterTable job={job.id} seconds={seconds} />}
    </>
  );
}
