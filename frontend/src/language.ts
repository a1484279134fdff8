// What the page says, in English or Chinese. English is the key; tests/unit/test_page_language.py finds what lacks.

import { ZH } from "./words.zh";

export type Language = "en" | "zh";

const KEPT = "howdah.language";

function first(): Language {
  const kept = window.localStorage.getItem(KEPT);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

let current: Language = first();
document.documentElement.lang = current;

export function language(): Language {
  return current;
}

/** The page is built anew by whoever asked. */
export function chooseLanguage(chosen: Language): void {
  current = chosen;
  window.localStorage.setItem(KEPT, chosen);
  document.documentElement.lang = chosen;
}

/** A sentence in the reader's language; `{name}` is filled from `values`. */
export function say(text: string, values: Record<string, string | number> = {}): string {
  const found = current === "zh" ? (ZH[text] ?? text) : text;
  return found.replace(/\{(\w+)\}/g, (mark, name: string) => `${values[name] ?? mark}`);
}

/** A sentence that `say` is given later, by name. */
export function key(text: string): string {
  return text;
}
