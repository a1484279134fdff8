// Pictures and text that programs have written down, step by step.

import type { ReactNode } from "react";
import type { Run } from "../api";
import { address } from "../client";
import { time } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { Nothing } from "../shell/Nothing";
import { usePick } from "./pick";

interface Props {
  job: string;
  runs: Run[];
  seconds: number;
  kind: "images" | "text";
}

const NEWEST = 60;
const MOST_OF_STEP = 64;

export default function Samples({ job, runs, seconds, kind }: Props): ReactNode {
  const { run, tag, picker } = usePick(runs, (each) => (kind === "images" ? each.tags.image : each.tags.text) ?? []);
  if (!tag) return <Nothing text={kind === "images" ? say("No images yet.") : say("No text yet.")} />;
  const Part = kind === "images" ? ImageList : TextList;
  return (
    <>
      {picker}
      <Part job={job} run={run} tag={tag} seconds={seconds} />
    </>
  );
}

interface PartProps {
  job: string;
  run: string;
  tag: string;
  seconds: number;
}

function ImageList({ job, run, tag, seconds }: PartProps): ReactNode {
  const polled = usePolled("jobs/{job}/curves/images", { job }, { run, tag }, seconds);
  const images = polled.data?.images ?? [];
  if (!images.length) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  return (
    <div className="thumbs">
      {images.slice(-NEWEST).flatMap(({ step, time: when, count }) =>
        Array.from({ length: Math.min(count, MOST_OF_STEP) }, (_, index) => (
          <figure key={`${step} ${index}`}>
            <img
              src={address("jobs/{job}/curves/image", { job }, { run, tag, step, index })}
              alt={say("{tag} at step {step}", { tag, step }) + (count > 1 ? ` (${index + 1}/${count})` : "")}
              loading="lazy"
            />
            <figcaption className="muted">
              {say("step {step}", { step }) + (count > 1 ? ` · ${index + 1}/${count}` : "")}
              {when ? ` · ${time(when)}` : ""}
            </figcaption>
          </figure>
        )),
      )}
    </div>
  );
}

function TextList({ job, run, tag, seconds }: PartProps): ReactNode {
  const polled = usePolled("jobs/{job}/curves/text", { job }, { run, tag }, seconds);
  const texts = polled.data?.texts ?? [];
  if (!texts.length) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  return (
    <>
      {texts
        .slice(-NEWEST)
        .reverse()
        .map(({ step, text }) => (
          <section key={step} className="card" style={{ marginBottom: 8 }}>
            <h2>{say("step {step}", { step })}</h2>
            <pre className="text" style={{ whiteSpace: "pre-wrap" }}>
              {text}
            </pre>
          </section>
        ))}
    </>
  );
}
