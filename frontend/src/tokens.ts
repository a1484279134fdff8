// Tokens come in the page's own address and go from it at once. The one for looking is kept with the entry of the tab's
// history, so that a reload shows the page again; the one for changing is in a variable alone (docs/adr/0008). Neither is
// in a storage: behind YARN's proxy that is everybody's.

interface Tokens {
  view: string;
  act: string;
}

let tokens: Tokens = { view: "", act: "" };

/** Take the tokens from the address, or from this entry of the history after a reload. */
export function takeTokens(): void {
  const kept = (window.history.state ?? {}) as { view?: string };
  const query = new URLSearchParams(window.location.search);
  const fragment = fragmentTokens(window.location.hash);
  tokens = {
    view: query.get("token") ?? fragment.get("token") ?? kept.view ?? tokens.view,
    act: fragment.get("act") ?? tokens.act,
  };
  query.delete("token");
  const rest = query.toString();
  const hash = fragment.size ? "" : window.location.hash;
  window.history.replaceState({ view: tokens.view }, "", window.location.pathname + (rest && `?${rest}`) + hash);
}

function fragmentTokens(hash: string): URLSearchParams {
  return new URLSearchParams(hash.startsWith("#/") ? "" : hash.slice(1));
}

/** The token for looking; empty where the engine's proxy vouches. */
export function viewToken(): string {
  return tokens.view;
}

/** The token for changing; empty without one. */
export function actToken(): string {
  return tokens.act;
}
