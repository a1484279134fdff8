// Where the time went: each task's phases, and which failure came first.

import { lazy, type ReactNode, useMemo } from "react";
import type { Job, Phase, Timeline as TimelineAnswer } from "../api";
import { duration, time } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { english, retold } from "../retold";
import { go, href, useRoute } from "../route";
import { Nothing } from "../shell/Nothing";
import { Stale } from "../shell/Stale";
import { useDark } from "../theme";
import { hasEnded } from "./jobState";
import { PHASES, phaseColour, rowsOf, timelineOption } from "./phases";
import { RoleChoice } from "./RoleChoice";

const EChart = lazy(() => import("../chart/EChart"));
const VISIBLE = 25;
const ROW = 20;

export default function Timeline({ job }: { job: Job }): ReactNode {
  const polled = usePolled("jobs/{job}/timeline", { job: job.id }, {}, hasEnded(job) ? 0 : 3);
  const dark = useDark();
  const role = useRoute().query.get("role") ?? "";
  const timeline = polled.data;
  const rows = useMemo(() => (timeline ? rowsOf(timeline, role) : []), [timeline, role]);
  const option = useMemo(() => (timeline ? timelineOption(timeline, rows, dark, VISIBLE) : {}), [timeline, rows, dark]);
  if (!timeline) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  return (
    <>
      <Stale polled={polled} />
      {timeline.first_failure && <First job={job.id} first={timeline.first_failure} />}
      <div className="row" style={{ marginBottom: 8 }}>
        <RoleChoice job={job} />
        <Phases timeline={timeline} />
      </div>
      <div className="card">
        <EChart
          label={say("Timeline of {count} tasks", { count: rows.length })}
          option={option}
          height={70 + ROW * Math.min(VISIBLE, Math.max(3, rows.length))}
          onPick={(name) => go(["jobs", job.id, "tasks", name.split(" #")[0] as string])}
        />
      </div>
      <Marks job={job.id} timeline={timeline} />
    </>
  );
}

function First({ job, first }: { job: string; first: NonNullable<TimelineAnswer["first_failure"]> }): ReactNode {
  return (
    <p className="card failure" style={{ margin: "0 0 8px" }}>
      {say("The first failure, at {time}:", { time: time(first.time) })}{" "}
      <a href={href(["jobs", job, "tasks", first.task])}>{first.task}</a> {retold(first.text)}
    </p>
  );
}

/** The phases with the time that the slowest task spent in each. */
function Phases({ timeline }: { timeline: TimelineAnswer }): ReactNode {
  const longest = new Map<Phase, { seconds: number; task: string }>();
  for (const { task, spans } of timeline.tasks) {
    for (const { phase, start, end } of spans) {
      const seconds = (end || timeline.to) - start;
      if (seconds > (longest.get(phase)?.seconds ?? -1)) longest.set(phase, { seconds, task });
    }
  }
  return (
    <>
      {PHASES.map((phase) => {
        const found = longest.get(phase);
        return (
          <span key={phase} title={found && say("longest: {task}", { task: found.task })}>
            <span className="swatch" style={{ background: phaseColour(phase) }} />
            {say(phase)} <span className="muted">{found && `≤ ${duration(found.seconds)}`}</span>
          </span>
        );
      })}
    </>
  );
}

function Marks({ job, timeline }: { job: string; timeline: TimelineAnswer }): ReactNode {
  if (!timeline.marks.length) return null;
  return (
    <section className="card" style={{ marginTop: 12 }}>
      <h2>{say("What happened")}</h2>
      <div className="scroll" tabIndex={0} style={{ maxHeight: 260 }}>
        <table className="small">
          <tbody>
            {timeline.marks.slice(-500).map((mark) => (
              <tr key={`${mark.time} ${mark.kind} ${mark.task} ${english(mark.text)}`}>
                <td style={{ whiteSpace: "nowrap" }}>{time(mark.time)}</td>
                <td className={mark.kind === "failed" || mark.kind === "lost" ? "bad" : ""}>{say(mark.kind)}</td>
                <td>{mark.task && <a href={href(["jobs", job, "tasks", mark.task])}>{mark.task}</a>}</td>
                <td>{retold(mark.text)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
