// Requests to the server: below the page's own address, whatever prefix a proxy has put before it.

import type { ActionResponse, ActionName, ActionBody, ApiResponse, ApiPath, PathParams, QueryParams } from "./api";
import { t } from "./language";
import { getActionToken, getViewToken } from "./tokens";
import { translateStored, type StoredSentence } from "./translateStored";

/** The server said no. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The parameter that is wrong; `token` where a link is needed. */
    readonly parameter = "",
    /** The command that prints such a link. */
    readonly command = "",
  ) {
    super(message);
  }
}

/** Nobody answered, or somebody else in the server's place, as YARN does after a job's end. */
export class ServerUnreachable extends Error {
  constructor() {
    super(t("The server cannot be reached."));
  }
}

const API_PREFIX = "api/v1/";

/** The address of a call, with the token for looking: for links and images. */
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

/** A call's JSON answer. */
export async function apiGet<C extends ApiPath>(
  path: C,
  pathParams: PathParams<C>,
  query?: QueryParams<C>,
  signal?: AbortSignal,
): Promise<ApiResponse<C>> {
  return (await apiGetVersion(path, pathParams as Record<string, string>, query ?? {}, signal)) as ApiResponse<C>;
}

/** The same for whoever keeps answers: with their version, or only that nothing has changed. */
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

/** Change something: PUT, because YARN's proxy lets no POST through. */
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
    return await fetch(url, options);
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
    const value = JSON.parse(text) as { error?: StoredSentence; place?: string; command?: string };
    return new ApiError(status, value.error ? translateStored(value.error) : `${status}`, value.place, value.command);
  } catch {
    const line = text.trim().startsWith("<") ? "" : text.trim().split("\n")[0]?.slice(0, 300);
    return new ApiError(status, line || `${status} ${statusText}`);
  }
}
