// Asking again and again: never while the tab is hidden, more slowly while nobody answers.

import { useEffect, useRef, useState } from "react";
import type { ApiResponse, ApiPath, PathParams, QueryParams } from "./api";
import { apiGetVersion, ApiError } from "./apiClient";
import { ACCESS_GRANTED_EVENT } from "./tokens";

export interface PollingResult<T> {
  data: T | undefined;
  error: Error | undefined;
  /** When the last answer came, epoch seconds; 0 before the first. */
  receivedAt: number;
}

const MAX_WAIT_S = 15;
/** In a hidden tab, of what is asked there at all. The server waits a little longer after a job's end. */
const HIDDEN_TAB_WAIT_S = 60;
const GATEWAY_TIMEOUT = 504;
/** Who answers nothing for so long does not answer; what is asked once may be a search through all logs. */
const POLL_TIMEOUT_S = 20;
const SINGLE_REQUEST_TIMEOUT_S = 150;

interface VersionedResponse {
  version?: number;
  unchanged?: boolean;
}

/** The newest answer of a call, asked every `seconds` (0: until there is one, or the server has run out of time for it).
 * An empty call asks nothing; `hidden`: it is asked in a hidden tab, too, once a minute; another `round`: it is asked
 * anew, as if it had not been before. */
export function usePolling<C extends ApiPath>(
  path: C | "",
  pathParams: PathParams<C>,
  query?: QueryParams<C>,
  seconds = 2,
  hidden = false,
  requestCount = 0,
): PollingResult<ApiResponse<C>> {
  const [result, setResult] = useState<PollingResult<ApiResponse<C>>>({ data: undefined, error: undefined, receivedAt: 0 });
  const key = path && JSON.stringify([path, pathParams, query ?? {}]);
  const lastRequest = useRef("");
  useEffect(() => {
    if (!key) return;
    const request = `${requestCount} ${key}`;
    if (lastRequest.current !== request) setResult({ data: undefined, error: undefined, receivedAt: 0 });
    lastRequest.current = request;
    return startPolling<ApiResponse<C>>(JSON.parse(key) as ApiRequest, seconds, hidden, setResult);
  }, [key, seconds, hidden, requestCount]);
  return result;
}

type ApiRequest = [call: ApiPath, places: Record<string, string>, query: object];
type UpdateResult<T> = (change: (last: PollingResult<T>) => PollingResult<T>) => void;

function startPolling<T>([path, pathParams, query]: ApiRequest, seconds: number, hidden: boolean, update: UpdateResult<T>): () => void {
  const stopped = new AbortController();
  let version: number | undefined;
  let failures = 0;
  let timer = 0;
  let done = false;
  const scheduleNext = (): void => {
    if (done) return;
    const visibleWaitS = Math.min(MAX_WAIT_S, (seconds || 2) * 2 ** Math.min(failures, 4));
    const waitS = document.hidden ? HIDDEN_TAB_WAIT_S : visibleWaitS;
    timer = window.setTimeout(request, waitS * 1000);
  };
  const request = async (): Promise<void> => {
    window.clearTimeout(timer);
    if (document.hidden && !hidden) return;
    try {
      const timeout = AbortSignal.timeout(1000 * (seconds ? POLL_TIMEOUT_S : SINGLE_REQUEST_TIMEOUT_S));
      const visibility = hidden ? (document.hidden ? "hidden" : "visible") : undefined; // the server waits for such pages
      const params = { ...query, since: version, open: visibility };
      const response = (await apiGetVersion(path, pathParams, params, AbortSignal.any([stopped.signal, timeout]))) as T & VersionedResponse;
      failures = 0;
      done = !seconds;
      const at = Date.now() / 1000;
      if (response.unchanged) update((last) => ({ ...last, error: undefined, receivedAt: at }));
      else {
        version = response.version;
        update(() => ({ data: response, error: undefined, receivedAt: at }));
      }
    } catch (error) {
      if (stopped.signal.aborted) return;
      failures += 1;
      update((last) => ({ ...last, error: error as Error }));
      if (error instanceof ApiError && (error.status === 404 || error.status === 403)) failures = 4;
      done = !seconds && error instanceof ApiError && error.status === GATEWAY_TIMEOUT; // it would be no quicker again
    }
    scheduleNext();
  };
  const onVisible = (): void => {
    if (!document.hidden && !done) void request();
  };
  document.addEventListener("visibilitychange", onVisible);
  window.addEventListener(ACCESS_GRANTED_EVENT, onVisible);
  void request();
  return () => {
    stopped.abort();
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisible);
    window.removeEventListener(ACCESS_GRANTED_EVENT, onVisible);
  };
}
