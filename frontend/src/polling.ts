// Asking again and again: never while the tab is hidden, more slowly while nobody answers.

import { useEffect, useRef, useState } from "react";
import type { Answer, Call, Places, QueryOf } from "./api";
import { getSince, Refused } from "./client";
import { ACCESS } from "./tokens";

export interface Polled<T> {
  data: T | undefined;
  error: Error | undefined;
  /** When the last answer came, epoch seconds; 0 before the first. */
  at: number;
}

const SLOWEST_S = 15;
/** In a hidden tab, of what is asked there at all. The server waits a little longer after a job's end. */
const HIDDEN_S = 60;
const OUT_OF_TIME = 504;
/** Who answers nothing for so long does not answer; what is asked once may be a search through all logs. */
const ANSWER_S = 20;
const LONG_ANSWER_S = 150;

interface Versioned {
  version?: number;
  unchanged?: boolean;
}

/** The newest answer of a call, asked every `seconds` (0: until there is one, or the server has run out of time for it).
 * An empty call asks nothing; `hidden`: it is asked in a hidden tab, too, once a minute; another `round`: it is asked
 * anew, as if it had not been before. */
export function usePolled<C extends Call>(
  call: C | "",
  places: Places<C>,
  query?: QueryOf<C>,
  seconds = 2,
  hidden = false,
  round = 0,
): Polled<Answer<C>> {
  const [polled, setPolled] = useState<Polled<Answer<C>>>({ data: undefined, error: undefined, at: 0 });
  const key = call && JSON.stringify([call, places, query ?? {}]);
  const known = useRef("");
  useEffect(() => {
    if (!key) return;
    const question = `${round} ${key}`;
    if (known.current !== question) setPolled({ data: undefined, error: undefined, at: 0 });
    known.current = question;
    return poll<Answer<C>>(JSON.parse(key) as Question, seconds, hidden, setPolled);
  }, [key, seconds, hidden, round]);
  return polled;
}

type Question = [call: Call, places: Record<string, string>, query: object];
type Told<T> = (change: (last: Polled<T>) => Polled<T>) => void;

function poll<T>([call, places, query]: Question, seconds: number, hidden: boolean, tell: Told<T>): () => void {
  const ended = new AbortController();
  let version: number | undefined;
  let failures = 0;
  let timer = 0;
  let done = false;
  const again = (): void => {
    if (done) return;
    const shown = Math.min(SLOWEST_S, (seconds || 2) * 2 ** Math.min(failures, 4));
    const wait = document.hidden ? HIDDEN_S : shown;
    timer = window.setTimeout(ask, wait * 1000);
  };
  const ask = async (): Promise<void> => {
    window.clearTimeout(timer);
    if (document.hidden && !hidden) return;
    try {
      const limit = AbortSignal.timeout(1000 * (seconds ? ANSWER_S : LONG_ANSWER_S));
      const open = hidden ? (document.hidden ? "hidden" : "visible") : undefined; // the server waits for such pages
      const asked = { ...query, since: version, open };
      const found = (await getSince(call, places, asked, AbortSignal.any([ended.signal, limit]))) as T & Versioned;
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
      if (error instanceof Refused && (error.status === 404 || error.status === 403)) failures = 4;
      done = !seconds && error instanceof Refused && error.status === OUT_OF_TIME; // it would be no quicker again
    }
    again();
  };
  const shown = (): void => {
    if (!document.hidden && !done) void ask();
  };
  document.addEventListener("visibilitychange", shown);
  window.addEventListener(ACCESS, shown);
  void ask();
  return () => {
    ended.abort();
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
    window.removeEventListener(ACCESS, shown);
  };
}
