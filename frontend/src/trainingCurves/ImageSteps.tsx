// The images of event files: all of one step, which a slider chooses.

import { Segmented } from "antd";
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
const MAX_IMAGES_PER_STEP = 64;
const SCALES = [1, 2, 4, 8];
/** Small images are enlarged to about this width at first. */
const GOOD_WIDTH_PX = 220;

export default function ImageSteps({ job, runs, seconds }: Props): ReactNode {
  const { run, tag, picker } = useTagPicker(runs, (each) => each.tags.image ?? []);
  if (!tag) return <EmptyState text={t("No images yet.")} />;
  return (
    <>
      {picker}
      <ImagesOfTag key={`${run} ${tag}`} job={job} run={run} tag={tag} seconds={seconds} />
    </>
  );
}

function ImagesOfTag({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/images", { job }, { run, tag, steps: MAX_STEPS }, seconds);
  const [chosenStep, setChosenStep] = useState<number>(); // the newest step without a choice
  const [chosenScale, setChosenScale] = useState<number>();
  const images = polled.data?.images ?? [];
  const index = chosenIndex(images, chosenStep);
  const image = images[index];
  if (!image) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const { step, time, count, width } = image;
  const scale = chosenScale ?? Math.max(1, ...SCALES.filter((each) => each * width <= GOOD_WIDTH_PX));
  const shown = Math.min(count, MAX_IMAGES_PER_STEP);
  return (
    <section className="card">
      <h2>{[t("step {step}", { step }), time ? formatTime(time) : ""].filter(Boolean).join(" · ")}</h2>
      <StepSlider steps={images} index={index} onChoose={setChosenStep} />
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={t("Scale")}
          size="small"
          value={scale}
          onChange={(value) => setChosenScale(value)}
          options={SCALES.map((value) => ({ value, label: `${value}×` }))}
        />
        {count > shown && <span className="muted">{t("and {count} more", { count: count - shown })}</span>}
      </div>
      <div className="image-list">
        {Array.from({ length: shown }, (_, number) => (
          <figure key={number}>
            <img
              src={apiUrl("jobs/{job}/curves/image", { job }, { run, tag, step, index: number })}
              alt={t("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${number + 1}/${count})` : "")}
              loading="lazy"
              style={width ? { width: width * scale } : {}}
            />
            {count > 1 && <figcaption className="muted">{`${number + 1}/${count}`}</figcaption>}
          </figure>
        ))}
      </div>
    </section>
  );
}
