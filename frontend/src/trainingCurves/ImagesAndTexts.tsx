// Images and texts in event files, step by step.

import type { ReactNode } from "react";
import type { EventRun } from "../api";
import { apiUrl } from "../apiClient";
import { EmptyState } from "../components/EmptyState";
import { formatTime } from "../format";
import { t } from "../language";
import { usePolling } from "../usePolling";
import { useTagPicker } from "./TagPicker";

interface Props {
  job: string;
  runs: EventRun[];
  seconds: number;
  kind: "images" | "text";
}

const MAX_STEPS = 60;
const MAX_IMAGES_PER_STEP = 64;

export default function ImagesAndTexts({ job, runs, seconds, kind }: Props): ReactNode {
  const { run, tag, picker } = useTagPicker(
    runs,
    (each) => (kind === "images" ? each.tags.image : each.tags.text) ?? [],
  );
  if (!tag) return <EmptyState text={kind === "images" ? t("No images yet.") : t("No text yet.")} />;
  const List = kind === "images" ? ImageList : TextList;
  return (
    <>
      {picker}
      <List job={job} run={run} tag={tag} seconds={seconds} />
    </>
  );
}

interface TagProps {
  job: string;
  run: string;
  tag: string;
  seconds: number;
}

function ImageList({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/images", { job }, { run, tag }, seconds);
  const images = polled.data?.images ?? [];
  if (!images.length) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <div className="image-list">
      {images.slice(-MAX_STEPS).flatMap(({ step, time: when, count }) =>
        Array.from({ length: Math.min(count, MAX_IMAGES_PER_STEP) }, (_, index) => (
          <figure key={`${step} ${index}`}>
            <img
              src={apiUrl("jobs/{job}/curves/image", { job }, { run, tag, step, index })}
              alt={t("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${index + 1}/${count})` : "")}
              loading="lazy"
            />
            <figcaption className="muted">
              {t("step {step}", { step }) + (count > 1 ? ` · ${index + 1}/${count}` : "")}
              {when ? ` · ${formatTime(when)}` : ""}
            </figcaption>
          </figure>
        )),
      )}
    </div>
  );
}

function TextList({ job, run, tag, seconds }: TagProps): ReactNode {
  const polled = usePolling("jobs/{job}/curves/text", { job }, { run, tag }, seconds);
  const texts = polled.data?.texts ?? [];
  if (!texts.length) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <>
      {texts
        .slice(-MAX_STEPS)
        .reverse()
        .map(({ step, text }) => (
          <section key={step} className="card" style={{ marginBottom: 8 }}>
            <h2>{t("step {step}", { step })}</h2>
            <pre className="text" style={{ whiteSpace: "pre-wrap" }}>
              {text}
            </pre>
          </section>
        ))}
    </>
  );
}
