// The timeline: the phases of each try of a task, the first failure and the last.

import { lazy, type ReactNode, useMemo } from "react";
import type { Job, Phase, Timeline as TimelineAnswer } from "../api";
import { EmptyState } from "../components/EmptyState";
import { StaleNotice } from "../components/StaleNotice";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { navigate, href, useRoute } from "../router";
import { useDarkMode } from "../theme";
import { usePolling } from "../usePolling";
import { hasEnded } from "./jobState";
import { RoleFilter } from "./RoleFilter";
import { eventName, phaseName } from "./phaseNames";
import { PHASES, phaseColour, timelineRows, timelineChartOption } from "./timelineChart";

const EChart = lazy(() => import("../charts/EChart"));
const VISIBLE_ROWS = 25;
const ROW_HEIGHT = 20;

export default function TimelineTab({ job }: { job: Job }): ReactNode {
  const polled = usePolling("jobs/{job}/timeline", { job: job.id }, {}, hasEnded(job) ? 0 : 3);
  const dark = useDarkMode();
  const role = useRoute().query.get("role") ?? "";
  const timeline = polled.data;
  const rows = useMemo(() => (timeline ? timelineRows(timeline, role) : []), [timeline, role]);
  const option = useMemo(
    () => (timeline ? timelineChartOption(timeline, rows, dark, VISIBLE_ROWS) : {}),
    [timeline, rows, dark],
  );
  if (!timeline) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return (
    <>
      <StaleNotice polled={polled} />
      <Failures job={job} timeline={timeline} />
      <div className="row" style={{ marginBottom: 8 }}>
        <RoleFilter job={job} />
        <PhaseLegend timeline={timeline} />
      </div>
      <div className="card">
        <EChart
          label={t("Timeline of {count} tasks", { count: rows.length })}
          option={option}
          height={70 + ROW_HEIGHT * Math.min(VISIBLE_ROWS, Math.max(3, rows.length))}
          onItemClick={(name) => navigate(["jobs", job.id, "tasks", name.split(" #")[0] as string])}
        />
      </div>
      <EventList job={job.id} timeline={timeline} />
    </>
  );
}

function Failures({ job, timeline }: { job: Job; timeline: TimelineAnswer }): ReactNode {
  const { first_failure: first, last_failure: last } = timeline;
  if (!first) return null;
  const mended = job.state === "SUCCEEDED";
  return (
    <div className={mended ? "card" : "card failure"} style={{ margin: "0 0 8px" }}>
      <Failure job={job.id} failure={first} heading={t("The first failure, at {time}:", { time: formatTime(first.time) })} />
      {last && (
        <Failure job={job.id} failure={last} heading={t("The last failure, at {time}:", { time: formatTime(last.time) })} />
      )}
      {mended && <div>{t("The job has succeeded all the same.")}</div>}
    </div>
  );
}

function Failure({
  job,
  failure,
  heading,
}: {
  job: string;
  failure: NonNullable<TimelineAnswer["first_failure"]>;
  heading: string;
}): ReactNode {
  return (
    <div>
      {heading} <a href={href(["jobs", job, "tasks", failure.task])}>{failure.task}</a> {failure.text}
    </div>
  );
}

/** The legend of the phases, with the longest time that a task spent in each. */
function PhaseLegend({ timeline }: { timeline: TimelineAnswer }): ReactNode {
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
        const longestSpan = longest.get(phase);
        return (
          <span key={phase} title={longestSpan && t("longest: {task}", { task: longestSpan.task })}>
            <span className="swatch" style={{ background: phaseColour(phase) }} />
            {phaseName(phase)} <span className="muted">{longestSpan && `≤ ${formatDuration(longestSpan.seconds)}`}</span>
          </span>
        );
      })}
    </>
  );
}

function EventList({ job, timeline }: { job: string; timeline: TimelineAnswer }): ReactNode {
  if (!timeline.marks.length) return null;
  return (
    <section className="card" style={{ marginTop: 12 }}>
      <h2>{t("What happened")}</h2>
      <div className="scroll" tabIndex={0} style={{ maxHeight: 260 }}>
        <table className="small">
          <tbody>
            {timeline.marks.slice(-500).map((event) => (
              <tr key={`${event.time} ${event.kind} ${event.task} ${event.text}`}>
                <td style={{ whiteSpace: "nowrap" }}>{formatTime(event.time)}</td>
                <td className={event.kind === "failed" || event.kind === "lost" ? "bad" : ""}>{eventName(event.kind)}</td>
                <td>{event.task && <a href={href(["jobs", job, "tasks", event.task])}>{event.task}</a>}</td>
                <td>{event.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
