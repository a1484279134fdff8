// A task's log as a component has it.

import { useCallback, useEffect, useRef, useState } from "react";
import { get } from "../client";
import { EMPTY, type LogText } from "./parts";
import { LogReader } from "./reader";

export interface Wanted {
  job: string;
  task: string;
  attempt: string;
  stream: string;
  live: boolean;
  /** Where to begin: bytes, BEGINNING, or empty for the end. */
  at: string;
}

interface Log {
  log: LogText;
  /** What is written from now on is read by itself. */
  following: boolean;
  earlier: () => void;
  later: () => void;
}

export function useLog({ job, task, attempt, stream, live, at }: Wanted): Log {
  const [{ log, following }, setRead] = useState({ log: EMPTY, following: false });
  const reader = useRef<LogReader>(null);
  const isLive = useRef(live);
  useEffect(() => {
    const opened = new LogReader(
      (offset, limit, signal) =>
        get("jobs/{job}/logs/{task}", { job, task }, { stream, attempt, offset, limit }, signal),
      (read, isFollowing) => setRead({ log: read, following: isFollowing }),
      at,
      isLive.current,
    );
    reader.current = opened;
    return () => opened.close();
  }, [job, task, attempt, stream, at]);
  useEffect(() => {
    isLive.current = live;
    reader.current?.setLive(live);
  }, [live]);
  const earlier = useCallback(() => void reader.current?.earlier(), []);
  const later = useCallback(() => reader.current?.later(), []);
  return { log, following, earlier, later };
}
