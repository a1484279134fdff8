// The last lines of a task's log, as they are written.

import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { Job } from "../api";
import { StackTracesButton } from "../job/StackTracesButton";
import { t } from "../language";
import { parseLogLines } from "../logs/logLines";
import { useLog } from "../logs/useLog";
import { href } from "../router";

const MAX_LINES = 200;
/** Enough for MAX_LINES usual lines. */
const MAX_CHARACTERS = 32_768;
const POLL_MS = 2000;
/** Who is this near to the end follows it, in pixels. */
const END_PX = 4;

export function LogTail({ job, task, live }: { job: Job; task: string; live: boolean }): ReactNode {
  const { log } = useLog({ job: job.id, task, attempt: "", stream: "both", live, position: "", pollMs: POLL_MS });
  const lines = useMemo(() => lastLines(log.text), [log.text]);
  const nothing = live ? t("Nothing has been printed yet.") : t("Nothing was printed.");
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const lastTop = useRef(0);
  const stayAtEnd = (): void => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(stayAtEnd, [lines]);
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(stayAtEnd);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  // Only who scrolls up leaves the end: the box may also become lower, and then the end is out of view for a moment.
  const onScroll = (): void => {
    const element = box.current;
    if (!element) return;
    if (element.scrollTop < lastTop.current) atEnd.current = false;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - END_PX) atEnd.current = true;
    lastTop.current = element.scrollTop;
  };
  return (
    <section className="card log-tail">
      <div className="row">
        <h2>
          <a href={href(["jobs", job.id, "logs"], { task })}>{t("Last lines of {task}", { task })}</a>
        </h2>
        <span className="grow" />
        {live && job.can.stacks && <StackTracesButton job={job} task={task} />}
      </div>
      <div
        ref={box}
        className="log"
        role="log"
        aria-live="off"
        aria-label={t("Log of {task}", { task })}
        tabIndex={0}
        onScroll={onScroll}
      >
        {lines.map((line) => (
          <div key={line.number} className={line.level}>
            {line.text || " "}
          </div>
        ))}
        {!lines.length && <div className="muted">{log.error || nothing}</div>}
      </div>
    </section>
  );
}

function lastLines(text: string): ReturnType<typeof parseLogLines> {
  const end = text.slice(-MAX_CHARACTERS);
  const whole = end.length < text.length ? end.slice(end.indexOf("\n") + 1) : end;
  return parseLogLines(whole).slice(-MAX_LINES);
}
