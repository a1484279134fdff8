// A router for the hash: `#/jobs/ID/logs?task=worker:0`. The address holds the whole view, so that it can be shared.

import { useSyncExternalStore } from "react";
import { openSession, readTokensFromUrl } from "./tokens";

interface Route {
  path: string[];
  query: URLSearchParams;
}

type QueryValues = Record<string, string | number | undefined>;

let currentRoute = parseHash(window.location.hash);
const listeners = new Set<() => void>();

window.addEventListener("hashchange", () => {
  readTokensFromUrl();
  void openSession();
  currentRoute = parseHash(window.location.hash);
  for (const listener of listeners) listener();
});

function parseHash(hash: string): Route {
  const [path = "", query = ""] = (hash.startsWith("#/") ? hash.slice(2) : "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decodeSegment), query: new URLSearchParams(query) };
}

function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a view of the page, for links. */
export function href(path: string[], query: QueryValues = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") params.set(name, `${value}`);
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** Opens a view. With `replace` it takes the place of the current entry in the browser's history. */
export function navigate(path: string[], query: QueryValues = {}, replace = false): void {
  const to = href(path, query);
  if (to === window.location.hash) return;
  if (replace) {
    window.history.replaceState(window.history.state, "", to);
    currentRoute = parseHash(to);
    for (const listener of listeners) listener();
  } else window.location.hash = to;
}

/** Changes parameters of the current view in the address. With `push` the browser's back button undoes the change. */
export function updateQuery(changes: QueryValues, push = false): void {
  const query: QueryValues = { ...Object.fromEntries(currentRoute.query), ...changes };
  navigate(currentRoute.path, query, !push);
}

export function useRoute(): Route {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => currentRoute,
  );
}
