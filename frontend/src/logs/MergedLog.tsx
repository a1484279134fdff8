// The ends of the logs of several tasks in the order of time, each line with its task in a colour of its own.

import { type ReactNode, useMemo, useRef } from "react";
import type { ApiResponse, Job } from "../api";
import { formatTime } from "../format";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { href, navigate, useRoute } from "../router";
import { lineColour, useDarkMode } from "../theme";
import { usePolling } from "../usePolling";
import { readableHex } from "./ansi";
import { type GutterLayout, LogRows, TIME_COLUMNS, useLogRows } from "./LogRows";
import { filterByLevel, type LogLine, parseLine } from "./logLines";
import { CopyLinesButton, type LogOptions } from "./LogView";
import { TaskScope } from "./TaskScope";

type MergedLine = ApiResponse<"jobs/{job}/logs/merged">["lines"][number];

const REFRESH_S = 5;
const NO_LINES: MergedLine[] = [];

interface Props {
  job: Job;
  /** The tasks, roles or ranks whose logs are merged; empty for all. */
  scope: string;
  level: string;
  options: LogOptions;
  height: string;
}

export function MergedLog({ job, scope, level, options, height }: Props): ReactNode {
  const polled = usePolling("jobs/{job}/logs/merged", { job: job.id }, { task: scope }, hasEnded(job) ? 0 : REFRESH_S);
  const merged = polled.data?.lines ?? NO_LINES;
  const first = useFirstNumber(merged);
  const lines = useMemo(() => filterEachStream(merged, first, level), [merged, first, level]);
  const gutter = useTaskGutter(job.id, merged, first, options);
  const rows = useLogRows(lines, { wrap: options.wrap, gutter, foundLine: undefined, atTop: false });
  const answer = polled.data;
  return (
    <>
      <LogRows state={rows} height={height} label={t("Merged log")} onChooseLine={openLine} />
      <div className="row muted" style={{ marginTop: 4 }}>
        <TaskScope job={job} scope={scope} />
        <CopyLinesButton lines={lines} />
        <span>{t("{lines} lines of {tasks} tasks", { lines: lines.length, tasks: answer?.tasks ?? 0 })}</span>
        {answer && answer.complete_since > 0 && (
          <span>{t("All lines since {time}", { time: formatTime(answer.complete_since) })}</span>
        )}
        {answer && answer.left_out > 0 && (
          <span className="bad">{t("{count} tasks are too many and left out: choose some", { count: answer.left_out })}</span>
        )}
        {polled.error && <span className="bad">{polled.error.message}</span>}
      </div>
      {answer?.problems.map((problem) => (
        <p key={problem} className="bad" style={{ margin: "4px 0 0" }}>
          {problem}
        </p>
      ))}
    </>
  );
}

/** Opens the log of one task at the line with this address. */
function openLine(address: string): void {
  const [path = "", query = ""] = address.slice(2).split("?");
  navigate(path.split("/").map(decodeURIComponent), Object.fromEntries(new URLSearchParams(query)));
}

/** Returns the number of the first line. A line that was there before keeps its number, so that the view stays at it. */
function useFirstNumber(merged: MergedLine[]): number {
  const known = useRef(new Map<string, number>());
  return useMemo(() => {
    const keys = merged.map(({ task, attempt, offset }) => `${task} ${attempt} ${offset}`);
    const at = keys.findIndex((key) => known.current.has(key));
    const first = at < 0 ? 0 : (known.current.get(keys[at] ?? "") ?? 0) - at;
    known.current = new Map(keys.map((key, index) => [key, first + index]));
    return first;
  }, [merged]);
}

/** Returns the lines of at least this level. Whether a line lies in a traceback depends on its stream's lines alone. */
function filterEachStream(merged: MergedLine[], first: number, level: string): LogLine[] {
  const lines = merged.map(({ text }, at) => ({ number: first + at, from: at, to: at + 1, ...parseLine(text) }));
  const streams = merged.map(({ task, attempt, stream }, at) => ({
    line: first + at,
    value: `${task} ${attempt} ${stream}`,
  }));
  return filterByLevel(lines, level, streams);
}

function useTaskGutter(job: string, merged: MergedLine[], first: number, { times }: LogOptions): GutterLayout {
  const dark = useDarkMode();
  const { query } = useRoute();
  const tasks = useMemo(() => [...new Set(merged.map(({ task }) => task))].sort(), [merged]);
  const colours = useMemo(
    () => new Map(tasks.map((task, index) => [task, readableHex(lineColour(index, dark), dark)])),
    [tasks, dark],
  );
  const contents = (lines: LogLine[]): ReturnType<GutterLayout["contents"]> =>
    lines.map(({ number }) => {
      const line = merged[number - first];
      if (!line) return {};
      const { task, attempt, offset } = line;
      const address = { ...Object.fromEntries(query), task, attempt, stream: "both", at: offset };
      const place = { text: task, href: href(["jobs", job, "logs"], address), title: t("Open this line") };
      return { place: { ...place, colour: colours.get(task) }, time: line.time ?? undefined };
    });
  return {
    timeColumns: times ? TIME_COLUMNS : 0,
    placeColumns: Math.max(0, ...tasks.map((task) => task.length)),
    contents,
  };
}
