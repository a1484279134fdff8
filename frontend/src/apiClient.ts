// Sends requests to the server. Addresses are relative to the page's own, so that they work behind any proxy prefix.

import type { ActionResponse, ActionName, ActionBody, ApiResponse, ApiPath, PathParams, QueryParams } from "./api";
import { currentLanguage, t } from "./language";
import { getActionToken, getViewToken } from "./tokens";

/** The server answered with an error status. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The name of the invalid parameter; `token` if an access link is needed. */
    readonly parameter = "",
    /** The command that prints an access link. */
    readonly command = "",
  ) {
    super(message);
  }
}

/** No server answered, or another one did: YARN's proxy answers in the server's place after the job's end. */
export class ServerUnreachable extends Error {
  constructor() {
    super(t("The server cannot be reached."));
  }
}

const API_PREFIX = "api/v1/";

/** Builds the URL of an API path, with the view token, for links and images. */
export function apiUrl<C extends ApiPath>(path: C, pathParams: PathParams<C>, query?: QueryParams<C>): string {
  return buildUrl(path, pathParams as Record<string, string>, query ?? {});
}

function buildUrl(call: string, pathParams: Record<string, string>, query: object): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][])
    if (Array.isArray(value)) for (const each of value) params.append(name, `${each}`);
    else if (value !== undefined && value !== "") params.set(name, `${value as string | number}`);
  if (getViewToken()) params.set("token", getViewToken());
  const path = call.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(pathParams[name] ?? ""));
  const text = params.toString();
  return API_PREFIX + path + (text && `?${text}`);
}

/** Fetches the JSON answer of an API path. */
export async function apiGet<C extends ApiPath>(
  path: C,
  pathParams: PathParams<C>,
  query?: QueryParams<C>,
  signal?: AbortSignal,
): Promise<ApiResponse<C>> {
  return (await apiGetVersion(path, pathParams as Record<string, string>, query ?? {}, signal)) as ApiResponse<C>;
}

/** Fetches an answer for a caller who keeps the last one: the new one has a version, or says that nothing changed. */
export async function apiGetVersion(
  path: ApiPath,
  pathParams: Record<string, string>,
  query: object,
  signal?: AbortSignal,
): Promise<unknown> {
  const options: RequestInit = { cache: "no-store" };
  if (signal) options.signal = signal;
  return parseResponse(await fetchFromServer(buildUrl(path, pathParams, query), options));
}

/** Runs an action on a job. The method is PUT, because YARN's proxy lets no POST through. */
export async function apiPutAction<A extends ActionName>(
  job: string,
  action: A,
  body?: Partial<ActionBody<A>>,
): Promise<ActionResponse<A>> {
  const json = JSON.stringify({ ...body, token: getActionToken() });
  const headers = { "Content-Type": "application/json" };
  const url = buildUrl(`jobs/{job}/actions/${action}`, { job }, {});
  return (await parseResponse(await fetchFromServer(url, { method: "PUT", body: json, headers }))) as ActionResponse<A>;
}

async function fetchFromServer(url: string, options: RequestInit): Promise<Response> {
  try {
    const headers = new Headers(options.headers);
    headers.set("Accept-Language", currentLanguage());
    return await fetch(url, { ...options, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ServerUnreachable();
  }
}

async function parseResponse(response: Response): Promise<unknown> {
  const json = response.headers.get("Content-Type")?.startsWith("application/json") ?? false;
  if (response.ok && json) return (await response.json()) as unknown;
  if (response.ok) throw new ServerUnreachable();
  throw toApiError(response, await response.text());
}

function toApiError({ status, statusText }: Response, text: string): ApiError {
  try {
    const value = JSON.parse(text) as { error?: string; place?: string; command?: string };
    return new ApiError(status, value.error || `${status}`, value.place, value.command);
  } catch {
    const firstLine = text.trim().startsWith("<") ? "" : text.trim().split("\n")[0]?.slice(0, 300);
    return new ApiError(status, firstLine || `${status} ${statusText}`);
  }
}
