// The audio clips of event files: all of one step, which a slider chooses.

import { type ReactNode, useState } from "react";
import type { EventRun } from "../api";
import { apiUrl } from "../apiClient";
import { EmptyState } from "../components/EmptyState";
import { formatTime } from "../format";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { chosenIndex } from "./chosenStep";
import { StepSlider } from "./StepSlider";
import { type TagProps, useTagPicker } from "./TagPicker";

interface Props {
  job: string;
  runs: EventRun[];
  seconds: number;
}

const MAX_STEPS = 100;
const MAX_CLIPS_PER_STEP = 32;

export default function AudioSteps({ job, runs, seconds }: Props): ReactNode {
  const { run, tag, picker } = useTagPicker(runs, (each) => each.tags.audio ?? []);
  if (!tag) return <EmptyState text={t("No audio yet.")} />;
  return (
    <>
      {picker}
      <ClipsOfTag key={`${run} ${tag}`} job={job} run={run} tag={tag} seconds={seconds} />
    </>
  );
}

function ClipsOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/audio", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const steps = polled.data?.steps ?? [];
  const index = chosenIndex(steps, chosenStep);
  const clips = steps[index];
  if (!clips) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const { step, time, count } = clips;
  const shown = Math.min(count, MAX_CLIPS_PER_STEP);
  return (
    <section className="card">
      <h2>{[t("step {step}", { step }), time ? formatTime(time) : ""].filter(Boolean).join(" · ")}</h2>
      <StepSlider steps={steps} index={index} onChoose={setChosenStep} />
      {Array.from({ length: shown }, (_, number) => (
        <audio
          key={`${step} ${number}`}
          controls
          preload="none"
          aria-label={t("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${number + 1}/${count})` : "")}
          src={apiUrl("jobs/{job}/curves/audio_clip", { job }, { run, tag, step, index: number })}
          style={{ display: "block", marginBottom: 8, maxWidth: "100%" }}
        />
      ))}
      {count > shown && <span className="muted">{t("and {count} more", { count: count - shown })}</span>}
    </section>
  );
}
