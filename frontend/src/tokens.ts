// Tokens arrive in the page's address and are removed from it at once. If the server has an origin of its own, the view
// token is exchanged for a cookie, so that new tabs and bookmarks open (docs/adr/0015). YARN's proxy drops cookies:
// behind it the view token is kept in the tab's history entry, for a reload. The action token is kept in a variable only
// (docs/adr/0008). Neither is kept in localStorage, which all jobs behind that proxy share.

interface Tokens {
  view: string;
  act: string;
}

let tokens: Tokens = { view: "", act: "" };

/** The window event that tells polling requests to try again, because a valid token has arrived. */
export const ACCESS_GRANTED_EVENT = "howdah-access";

/** Reads the tokens from the address, or from the history entry after a reload, and removes them from the address. */
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

/** Splits `#token=…&act=…`, or `#/jobs/ID?task=worker%3A0&token=…`, into parameters and the rest of the hash. */
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

/** Exchanges the view token for a cookie. Returns whether the server accepted the token. */
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
    return false; // the requests that follow show the reason
  }
}

/** Takes the text that a person entered, a token or a whole link. Returns whether the server accepted it. */
export async function submitToken(text: string): Promise<boolean> {
  const previous = { ...tokens };
  tokens.view = /token=([^&#\s]+)/.exec(text)?.[1] ?? text.trim();
  tokens.act = /\bact=([^&#\s]+)/.exec(text)?.[1] ?? tokens.act;
  const accepted = await openSession();
  if (!accepted) tokens = previous;
  replaceUrl(window.location.pathname, window.location.search.slice(1), window.location.hash);
  return accepted;
}

/** Returns the view token; empty if a cookie or the engine's proxy gives access. */
export function getViewToken(): string {
  return tokens.view;
}

/** Returns the action token; empty without one. */
export function getActionToken(): string {
  return tokens.act;
}
