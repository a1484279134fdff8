// The audio clips of event files: all of one step, which a slider chooses.

import type { ReactNode } from "react";
import { apiUrl } from "../apiClient";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { MAX_STEPS, StepCard } from "./StepCard";
import { type CurveProps, TagPicker, type TagProps } from "./TagPicker";

const MAX_CLIPS_PER_STEP = 32;

export default function AudioSteps(props: CurveProps): ReactNode {
  return <TagPicker {...props} tagsOf={(each) => each.tags.audio ?? []} nothing={t("No audio yet.")} View={ClipsOfTag} />;
}

function ClipsOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const { data, error } = usePolling("jobs/{job}/curves/audio", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  return (
    <StepCard steps={data?.steps} error={error}>
      {({ step, count }) => (
        <>
          {Array.from({ length: Math.min(count, MAX_CLIPS_PER_STEP) }, (_, number) => (
            <audio
              key={`${step} ${number}`}
              controls
              preload="none"
              aria-label={t("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${number + 1}/${count})` : "")}
              src={apiUrl("jobs/{job}/curves/audio_clip", { job }, { run, tag, step, index: number })}
              style={{ display: "block", marginBottom: 8, maxWidth: "100%" }}
            />
          ))}
          {count > MAX_CLIPS_PER_STEP && (
            <span className="muted">{t("and {count} more", { count: count - MAX_CLIPS_PER_STEP })}</span>
          )}
        </>
      )}
    </StepCard>
  );
}
