// A task's log as it comes: the end first, what follows as it is written, what was before when asked for.

import { useCallback, useEffect, useState } from "react";
import type { LogPart } from "../api";
import { get } from "../client";
import { added, before, EMPTY, type LogText } from "./parts";

const PART = 65536;

export interface Wanted {
  job: string;
  task: string;
  attempt: string;
  stream: string;
  live: boolean;
  /** Begin here (bytes) instead of at the end; empty for the end. */
  at: string;
}

export function useTail({ job, task, attempt, stream, live, at }: Wanted): { log: LogText; earlier: () => void } {
  const [log, setLog] = useState<LogText>(EMPTY);
  const { from } = log;
  const ask = useCallback(
    (offset: number, limit: number, signal?: AbortSignal): Promise<LogPart> => {
      return get("jobs/{job}/logs/{task}", { job, task }, { stream, attempt, offset, limit }, signal);
    },
    [job, task, attempt, stream],
  );
  useEffect(() => {
    const ended = new AbortController();
    setLog(EMPTY);
    const begin = at === "" ? -PART : Math.max(0, Number(at) - PART / 4);
    return follow(
      (offset) => ask(offset, PART, ended.signal),
      begin,
      live,
      ended,
      (part, first) =>
        setLog((last) => added(first ? EMPTY : last, part)),
      (error) => setLog((last) => ({ ...last, error })),
    );
  }, [ask, at, live]);
  const earlier = useCallback((): void => {
    const begin = Math.max(0, from - PART);
    ask(begin, from - begin).then(
      (part) => setLog((last) => (last.from === from ? before(last, part) : last)), // asked twice it comes once
      (error: unknown) => setLog((last) => ({ ...last, error: (error as Error).message })),
    );
  }, [ask, from]);
  return { log, earlier };
}

type Ask = (offset: number) => Promise<LogPart>;

function follow(
  ask: Ask,
  begin: number,
  live: boolean,
  ended: AbortController,
  tell: (part: LogPart, first: boolean) => void,
  fail: (error: string) => void,
): () => void {
  let next: number | null = null;
  let timer = 0;
  let failures = 0;
  const again = async (): Promise<void> => {
    let wait = 1000;
    try {
      if (!document.hidden) {
        const part = await ask(next ?? begin);
        tell(part, next === null);
        failures = 0;
        if (part.next > (next ?? -1) && part.text && part.next < part.size) wait = 0;
        else if (part.complete || !live) return;
        next = part.next;
      }
    } catch (error) {
      if (ended.signal.aborted) return;
      fail((error as Error).message);
      failures += 1;
      wait = Math.min(15_000, 1000 * 2 ** failures);
      if (!live && failures > 3) return;
    }
    timer = window.setTimeout(again, wait);
  };
  void again();
  return () => {
    ended.abort();
    window.clearTimeout(timer);
  };
}
