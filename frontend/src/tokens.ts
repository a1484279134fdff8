// Tokens come in the page's own address and go from it at once. Where the server has an origin of its own the one for
// looking is exchanged for a cookie, so that new tabs, bookmarks and addresses open (docs/adr/0011). Behind YARN's proxy,
// which drops cookies, it is kept with the entry of the tab's history for a reload. The one for changing is in a variable
// alone (docs/adr/0008). Neither is in a storage: behind that proxy it is everybody's.

interface Tokens {
  view: string;
  act: string;
}

let tokens: Tokens = { view: "", act: "" };

/** What is asked again waits for this event of the window: a token has come that lets in. */
export const ACCESS_GRANTED_EVENT = "howdah-access";

/** Take the tokens from the address, or from this entry of the history after a reload. */
export function readTokensFromUrl(): void {
  const historyState = (window.history.state ?? {}) as { view?: string };
  const query = new URLSearchParams(window.location.search);
  const { found, rest } = fragmentTokens(window.location.hash);
  tokens = {
    view: query.get("token") ?? found.get("token") ?? historyState.view ?? tokens.view,
    act: found.get("act") ?? tokens.act,
  };
  query.delete("token");
  replaceUrl(window.location.pathname, query.toString(), rest);
}

/** `#token=…&act=…`, or behind a place: `#/jobs/ID?task=worker%3A0&token=…`; and what stays in the address. */
function fragmentTokens(hash: string): { found: URLSearchParams; rest: string } {
  if (!hash.startsWith("#/")) return { found: new URLSearchParams(hash.slice(1)), rest: "" };
  const [place = "", words = ""] = hash.split("?", 2);
  const found = new URLSearchParams(words);
  const rest = new URLSearchParams([...found].filter(([name]) => name !== "token" && name !== "act")).toString();
  return { found, rest: found.has("token") || found.has("act") ? place + (rest && `?${rest}`) : hash };
}

function replaceUrl(path: string, query: string, hash: string): void {
  window.history.replaceState({ view: tokens.view }, "", path + (query && `?${query}`) + hash);
}

/** Exchange the token for the cookie of a path, and go on below that path; whether the token is right. */
export async function openSession(): Promise<boolean> {
  const accepted = tokens.view !== "" && (await exchangeTokenForCookie());
  if (accepted) window.dispatchEvent(new Event(ACCESS_GRANTED_EVENT));
  return accepted;
}

async function exchangeTokenForCookie(): Promise<boolean> {
  try {
    const request = { method: "PUT", body: JSON.stringify({ token: tokens.view }) };
    const response = await fetch("api/v1/session", { ...request, headers: { "Content-Type": "application/json" } });
    if (!response.ok) return false;
    const { path } = (await response.json()) as { path: string };
    if (path && (await fetch(`${path}api/v1/session`)).ok) {
      tokens.view = "";
      replaceUrl(path, window.location.search.slice(1), window.location.hash);
    }
    return true;
  } catch {
    return false; // the calls that follow say why
  }
}

/** Take what a person has typed, a token or a whole link; whether it lets in. */
export async function submitToken(text: string): Promise<boolean> {
  const previous = { ...tokens };
  tokens.view = /token=([^&#\s]+)/.exec(text)?.[1] ?? text.trim();
  tokens.act = /\bact=([^&#\s]+)/.exec(text)?.[1] ?? tokens.act;
  const accepted = await openSession();
  if (!accepted) tokens = previous;
  replaceUrl(window.location.pathname, window.location.search.slice(1), window.location.hash);
  return accepted;
}

/** The token for looking; empty where the browser's cookie, or the engine's proxy, vouches. */
export function getViewToken(): string {
  return tokens.view;
}

/** The token for changing; empty without one. */
export function getActionToken(): string {
  return tokens.act;
}
