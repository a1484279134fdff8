// Requests to the server: below the page's own address, whatever prefix a proxy has put before it.

import { retold, type Sentence } from "./retold";
import { actToken, viewToken } from "./tokens";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A list stands for a parameter that is repeated. */
export type Query = Record<string, string | number | string[] | undefined>;

const API = "api/v1/";

/** The address of a call, with the token for looking: for links and images. */
export function address(path: string, query: Query = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (Array.isArray(value)) for (const each of value) asked.append(name, each);
    else if (value !== undefined && value !== "") asked.set(name, `${value}`);
  if (viewToken()) asked.set("token", viewToken());
  const text = asked.toString();
  return API + path + (text && `?${text}`);
}

/** A call's JSON answer. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const options: RequestInit = { cache: "no-store" };
  if (signal) options.signal = signal;
  return answer<T>(await fetch(address(path, query), options));
}

/** Change something: PUT, because YARN's proxy lets no POST through. */
export async function act<T>(job: string, action: string, body: Record<string, unknown> = {}): Promise<T> {
  const path = `jobs/${encodeURIComponent(job)}/actions/${action}`;
  const text = JSON.stringify({ ...body, token: actToken() });
  const headers = { "Content-Type": "application/json" };
  return answer<T>(await fetch(address(path), { method: "PUT", body: text, headers }));
}

async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  throw new Refused(response.status, told(text) || `${response.status} ${response.statusText}`);
}

function told(text: string): string {
  try {
    const value = JSON.parse(text) as { error?: Sentence; place?: string };
    return [value.place, value.error && retold(value.error)].filter(Boolean).join(": ");
  } catch {
    return text.trim().startsWith("<") ? "" : (text.trim().split("\n")[0]?.slice(0, 300) ?? "");
  }
}

/** `jobs/ID/…` with the id as one piece of the path. */
export function jobPath(job: string, rest = ""): string {
  return `jobs/${encodeURIComponent(job)}${rest && `/${rest}`}`;
}
