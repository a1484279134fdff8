// Where the reader is: `#/jobs/ID/logs?task=worker:0`. The whole place is in the address, so it can be sent to others.

import { useSyncExternalStore } from "react";
import { openSession, takeTokens } from "./tokens";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

export type Place = Record<string, string | number | undefined>;

let current = parse(window.location.hash);
const listeners = new Set<() => void>();

window.addEventListener("hashchange", () => {
  takeTokens();
  void openSession();
  current = parse(window.location.hash);
  for (const listener of listeners) listener();
});

function parse(hash: string): Route {
  const [path = "", query = ""] = (hash.startsWith("#/") ? hash.slice(2) : "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a place in the page, for links. */
export function href(path: string[], query: Place = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") asked.set(name, `${value}`);
  const text = asked.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** Go there. With `replace` the reader's way back does not lead here. */
export function go(path: string[], query: Place = {}, replace = false): void {
  const to = href(path, query);
  if (to === window.location.hash) return;
  if (replace) {
    window.history.replaceState(window.history.state, "", to);
    current = parse(to);
    for (const listener of listeners) listener();
  } else window.location.hash = to;
}

/** Change what the query says of this place. */
export function amend(changes: Place): void {
  const query: Place = { ...Object.fromEntries(current.query), ...changes };
  go(current.path, query, true);
}

export function useRoute(): Route {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
