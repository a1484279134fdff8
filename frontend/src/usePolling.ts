// Polls the server: not while the tab is hidden, and less often while the server does not answer.

import { useEffect, useRef, useState } from "react";
import type { ApiResponse, ApiPath, PathParams, QueryParams } from "./api";
import { apiGetVersion, ApiError } from "./apiClient";
import { ACCESS_GRANTED_EVENT } from "./tokens";

export interface PollingResult<T> {
  data: T | undefined;
  error: Error | undefined;
  /** When the last answer arrived, Unix seconds; 0 before the first answer. */
  receivedAt: number;
}

const MAX_WAIT_S = 15;
/** The interval in a hidden tab. The server stays a little longer than this after a job's end. */
const HIDDEN_TAB_WAIT_S = 60;
const GATEWAY_TIMEOUT = 504;
/** A server that is silent for this long does not answer. A single request may take longer: it may search all logs. */
const POLL_TIMEOUT_S = 20;
const SINGLE_REQUEST_TIMEOUT_S = 150;

interface VersionedResponse {
  version?: number;
  unchanged?: boolean;
}

/** Returns the newest answer of an API path and requests it every `seconds` (0: until there is an answer or the server
 * says that it ran out of time). An empty path requests nothing. `hidden`: also requests once a minute in a hidden tab.
 * Another `requestCount` starts from scratch. */
export function usePolling<C extends ApiPath>(
  path: C | "",
  pathParams: PathParams<C>,
  query?: QueryParams<C>,
  seconds = 2,
  hidden = false,
  requestCount = 0,
): PollingResult<ApiResponse<C>> {
  const [result, setResult] = useState<PollingResult<ApiResponse<C>>>({
    data: undefined,
    error: undefined,
    receivedAt: 0,
  });
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

/** Returns the newest data, also while a changed request has no answer yet, so that the view stays. */
export function useLatestData<T>({ data, error }: PollingResult<T>): T | undefined {
  const [latest, setLatest] = useState(data);
  if (data && data !== latest) setLatest(data);
  return data ?? (error ? undefined : latest);
}

type ApiRequest = [path: ApiPath, pathParams: Record<string, string>, query: object];
type UpdateResult<T> = (change: (last: PollingResult<T>) => PollingResult<T>) => void;

function startPolling<T>(
  [path, pathParams, query]: ApiRequest,
  seconds: number,
  hidden: boolean,
  update: UpdateResult<T>,
): () => void {
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
      // The server waits for open pages at the job's end.
      const visibility = hidden ? (document.hidden ? "hidden" : "visible") : undefined;
      const params = { ...query, since: version, open: visibility };
      const response = (await apiGetVersion(
        path,
        pathParams,
        params,
        AbortSignal.any([stopped.signal, timeout]),
      )) as T & VersionedResponse;
      failures = 0;
      done = !seconds;
      const receivedAt = Date.now() / 1000;
      if (response.unchanged) update((last) => ({ ...last, error: undefined, receivedAt }));
      else {
        version = response.version;
        update(() => ({ data: response, error: undefined, receivedAt }));
      }
    } catch (error) {
      if (stopped.signal.aborted) return;
      failures += 1;
      update((last) => ({ ...last, error: error as Error }));
      if (error instanceof ApiError && (error.status === 404 || error.status === 403)) failures = 4;
      // After a timeout at the server a second request would take as long.
      done = !seconds && error instanceof ApiError && error.status === GATEWAY_TIMEOUT;
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
