// Requests to the server: below the page's own address, whatever prefix a proxy has put before it.

import type { ActionAnswer, ActionName, ActionWords, Answer, Call, Places, QueryOf } from "./api";
import { say } from "./language";
import { retold, type Sentence } from "./retold";
import { actToken, viewToken } from "./tokens";

/** The server said no. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The parameter that is wrong; `token` where a link is needed. */
    readonly place = "",
    /** The command that prints such a link. */
    readonly command = "",
  ) {
    super(message);
  }
}

/** Nobody answered, or somebody else in the server's place, as YARN does after a job's end. */
export class Unreachable extends Error {
  constructor() {
    super(say("The server cannot be reached."));
  }
}

const API = "api/v1/";

/** The address of a call, with the token for looking: for links and images. */
export function address<C extends Call>(call: C, places: Places<C>, query?: QueryOf<C>): string {
  return located(call, places as Record<string, string>, query ?? {});
}

function located(call: string, places: Record<string, string>, query: object): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][])
    if (Array.isArray(value)) for (const each of value) asked.append(name, `${each}`);
    else if (value !== undefined && value !== "") asked.set(name, `${value as string | number}`);
  if (viewToken()) asked.set("token", viewToken());
  const path = call.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(places[name] ?? ""));
  const text = asked.toString();
  return API + path + (text && `?${text}`);
}

/** A call's JSON answer. */
export async function get<C extends Call>(
  call: C,
  places: Places<C>,
  query?: QueryOf<C>,
  signal?: AbortSignal,
): Promise<Answer<C>> {
  return (await getSince(call, places as Record<string, string>, query ?? {}, signal)) as Answer<C>;
}

/** The same for whoever keeps answers: with their version, or only that nothing has changed. */
export async function getSince(
  call: Call,
  places: Record<string, string>,
  query: object,
  signal?: AbortSignal,
): Promise<unknown> {
  const options: RequestInit = { cache: "no-store" };
  if (signal) options.signal = signal;
  return answer(await asked(located(call, places, query), options));
}

/** Change something: PUT, because YARN's proxy lets no POST through. */
export async function act<A extends ActionName>(
  job: string,
  action: A,
  words?: Partial<ActionWords<A>>,
): Promise<ActionAnswer<A>> {
  const text = JSON.stringify({ ...words, token: actToken() });
  const headers = { "Content-Type": "application/json" };
  const where = located(`jobs/{job}/actions/${action}`, { job }, {});
  return (await answer(await asked(where, { method: "PUT", body: text, headers }))) as ActionAnswer<A>;
}

async function asked(where: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(where, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
}

async function answer(response: Response): Promise<unknown> {
  const json = response.headers.get("Content-Type")?.startsWith("application/json") ?? false;
  if (response.ok && json) return (await response.json()) as unknown;
  if (response.ok) throw new Unreachable();
  throw refusal(response, await response.text());
}

function refusal({ status, statusText }: Response, text: string): Refused {
  try {
    const value = JSON.parse(text) as { error?: Sentence; place?: string; command?: string };
    return new Refused(status, value.error ? retold(value.error) : `${status}`, value.place, value.command);
  } catch {
    const line = text.trim().startsWith("<") ? "" : text.trim().split("\n")[0]?.slice(0, 300);
    return new Refused(status, line || `${status} ${statusText}`);
  }
}
