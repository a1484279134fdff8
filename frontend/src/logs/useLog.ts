// Reads a task's log for a component.

import { useCallback, useEffect, useRef, useState } from "react";
import { apiGet } from "../apiClient";
import { LogReader } from "./LogReader";
import { EMPTY_LOG, type LogText } from "./logText";

export interface LogRequest {
  job: string;
  task: string;
  attempt: string;
  stream: string;
  live: boolean;
  /** Where to begin: an offset in bytes, BEGINNING, or empty for the end. */
  position: string;
  /** The milliseconds between two requests for new lines; 1,000 by default. */
  pollMs?: number;
}

interface LogHandle {
  log: LogText;
  /** New lines are read as they are written. */
  following: boolean;
  loadEarlier: () => void;
  loadLater: () => void;
}

export function useLog({ job, task, attempt, stream, live, position, pollMs }: LogRequest): LogHandle {
  const [{ log, following }, setState] = useState({ log: EMPTY_LOG, following: false });
  const reader = useRef<LogReader>(null);
  const isLive = useRef(live);
  useEffect(() => {
    const opened = new LogReader(
      (offset, limit, signal) =>
        apiGet("jobs/{job}/logs/{task}", { job, task }, { stream, attempt, offset, limit, lines: 1 }, signal),
      (read, isFollowing) => setState({ log: read, following: isFollowing }),
      position,
      isLive.current,
      pollMs,
    );
    reader.current = opened;
    return () => opened.close();
  }, [job, task, attempt, stream, position, pollMs]);
  useEffect(() => {
    isLive.current = live;
    reader.current?.setLive(live);
  }, [live]);
  const loadEarlier = useCallback(() => void reader.current?.loadEarlier(), []);
  const loadLater = useCallback(() => reader.current?.loadLater(), []);
  return { log, following, loadEarlier, loadLater };
}
