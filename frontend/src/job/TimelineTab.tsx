// The timeline: the phases of each start of a program, the first failure and the last, and what happened.

import { type ReactNode, useMemo } from "react";
import type { Job, Phase, Timeline as TimelineAnswer } from "../api";
import { EmptyState } from "../components/EmptyState";
import { RangePicker } from "../components/RangePicker";
import { StaleNotice } from "../components/StaleNotice";
import { START_UP, type TimeRange, useTimeRange } from "../components/timeRange";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { href, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { hasEnded } from "./jobState";
import { RoleFilter } from "./RoleFilter";
import { eventName, phaseName } from "./phaseNames";
import { PHASES, phaseColour, timelineMarks, timelineRows } from "./timelineRows";
import { TimelineTable } from "./TimelineTable";

export default function TimelineTab({ job }: { job: Job }): ReactNode {
  const polled = usePolling("jobs/{job}/timeline", { job: job.id }, {}, hasEnded(job) ? 0 : 3);
  const role = useRoute().query.get("role") ?? "";
  const range = useTimeRange();
  const timeline = polled.data;
  const rows = useMemo(() => (timeline ? timelineRows(timeline, role) : []), [timeline, role]);
  const marks = useMemo(() => (timeline ? timelineMarks(timeline) : []), [timeline]);
  if (!timeline) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const now = timeline.to || polled.receivedAt;
  const [from, to] = shownTime(job, timeline.from, now, range);
  return (
    <>
      <StaleNotice polled={polled} />
      <Failures job={job} timeline={timeline} />
      <div className="row" style={{ marginBottom: 8 }}>
        <RoleFilter job={job} />
        <RangePicker startUp={job.running > 0} />
        <span className="muted">
          {formatTime(from)} – {formatTime(to)}
        </span>
      </div>
      <Legend timeline={timeline} />
      <TimelineTable job={job.id} rows={rows} marks={marks} from={from} to={to} now={now} />
      <EventList job={job.id} timeline={timeline} />
    </>
  );
}

const START_UP_MARGIN = 1.15;

/** Returns the time that is shown, Unix seconds. */
function shownTime(job: Job, begin: number, end: number, range: TimeRange): [from: number, to: number] {
  const last = Math.max(end, begin + 1);
  if (range.preset === START_UP && job.running > begin)
    return [begin, Math.min(last, Math.max(begin + 1, begin + (job.running - begin) * START_UP_MARGIN))];
  if (range.from === undefined) return [begin, last];
  return range.from < 0 ? [Math.max(begin, last + range.from), last] : [range.from, range.to ?? last];
}

function Failures({ job, timeline }: { job: Job; timeline: TimelineAnswer }): ReactNode {
  const { first_failure: first, last_failure: last } = timeline;
  if (!first) return null;
  const mended = job.state === "SUCCEEDED";
  return (
    <div className={mended ? "card mended" : "card failure"} style={{ margin: "0 0 8px" }}>
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

/** The legend of phases, with the longest time that a task spent in each, and of the lines across all rows. */
function Legend({ timeline }: { timeline: TimelineAnswer }): ReactNode {
  const longest = new Map<Phase, { seconds: number; task: string }>();
  for (const { task, spans } of timeline.tasks) {
    for (const { phase, start, end } of spans) {
      const seconds = (end || timeline.to) - start;
      if (seconds > (longest.get(phase)?.seconds ?? -1)) longest.set(phase, { seconds, task });
    }
  }
  return (
    <div className="row" style={{ marginBottom: 8, columnGap: 14 }}>
      {PHASES.map((phase) => {
        const longestSpan = longest.get(phase);
        return (
          <span key={phase} title={longestSpan && t("longest: {task}", { task: longestSpan.task })}>
            <span className="swatch" style={{ background: phaseColour(phase) }} />
            {phaseName(phase)} <span className="muted">{longestSpan && `≤ ${formatDuration(longestSpan.seconds)}`}</span>
          </span>
        );
      })}
      {timeline.first_failure && (
        <span>
          <span className="swatch line failure" />
          {timeline.last_failure ? t("first and last failure") : t("first failure")}
        </span>
      )}
      {timelineMarks(timeline).some(({ kind }) => kind === "event") && (
        <span>
          <span className="swatch line" />
          {t("restart, snapshot, or another master")}
        </span>
      )}
    </div>
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
                <td className="narrow">{formatTime(event.time)}</td>
                <td className={`narrow ${event.kind === "failed" || event.kind === "lost" ? "bad" : ""}`}>
                  {eventName(event.kind)}
                </td>
                <td className="narrow">{event.task && <a href={href(["jobs", job, "tasks", event.task])}>{event.task}</a>}</td>
                <td>{event.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
