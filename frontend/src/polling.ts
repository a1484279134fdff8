// Asking again and again: never while the tab is hidden, more slowly while nobody answers.

import { useEffect, useRef, useState } from "react";
import { get, type Query, Refused } from "./client";

export interface Polled<T> {
  data: T | undefined;
  error: Error | undefined;
  /** When the last answer came, epoch seconds; 0 before the first. */
  at: number;
}

const SLOWEST_S = 15;
const OUT_OF_TIME = 504;

interface Versioned {
  version?: number;
  unchanged?: boolean;
}

/** The newest answer of a call, asked every `seconds` (0: until there is one, or the server has run out of time for it).
 * An empty path asks nothing. */
export function usePolled<T>(path: string, query: Query = {}, seconds = 2): Polled<T> {
  const [polled, setPolled] = useState<Polled<T>>({ data: undefined, error: undefined, at: 0 });
  const key = path && JSON.stringify([path, query]);
  const known = useRef("");
  useEffect(() => {
    if (!key) return;
    if (known.current !== key) setPolled({ data: undefined, error: undefined, at: 0 });
    known.current = key;
    const [asked, withQuery] = JSON.parse(key) as [string, Query];
    return poll<T>(asked, withQuery, seconds, setPolled);
  }, [key, seconds]);
  return polled;
}

type Told<T> = (change: (last: Polled<T>) => Polled<T>) => void;

function poll<T>(path: string, query: Query, seconds: number, tell: Told<T>): () => void {
  const ended = new AbortController();
  let version: number | undefined;
  let failures = 0;
  let timer = 0;
  let done = false;
  const again = (): void => {
    if (done) return;
    const wait = Math.min(SLOWEST_S, (seconds || 2) * 2 ** Math.min(failures, 4));
    timer = window.setTimeout(ask, wait * 1000);
  };
  const ask = async (): Promise<void> => {
    window.clearTimeout(timer);
    if (document.hidden) return;
    try {
      const found = await get<T & Versioned>(path, { ...query, since: version }, ended.signal);
      failures = 0;
      done = !seconds;
      const at = Date.now() / 1000;
      if (found.unchanged) tell((last) => ({ ...last, error: undefined, at }));
      else {
        version = found.version;
        tell(() => ({ data: found, error: undefined, at }));
      }
    } catch (error) {
      if (ended.signal.aborted) return;
      failures += 1;
      tell((last) => ({ ...last, error: error as Error }));
      if (error instanceof Refused && error.status === 404) failures = 4;
      done = !seconds && error instanceof Refused && error.status === OUT_OF_TIME; // it would be no quicker again
    }
    again();
  };
  const shown = (): void => {
    if (!document.hidden && !done) void ask();
  };
  document.addEventListener("visibilitychange", shown);
  void ask();
  return () => {
    ended.abort();
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
  };
}
