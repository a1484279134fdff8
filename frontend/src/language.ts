// What the page says, in English or Chinese. English is the key; tests/unit/test_page_language.py finds what lacks.

import { ZH } from "./words.zh";

export type Language = "en" | "zh";

const STORAGE_KEY = "howdah.language";

function initialLanguage(): Language {
  const stored = window.localStorage.getItem(STORAGE_KEY);
  if (stored === "en" || stored === "zh") return stored;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

let current: Language = initialLanguage();
document.documentElement.lang = current;

export function currentLanguage(): Language {
  return current;
}

/** The page is built anew by whoever asked. */
export function setLanguage(chosen: Language): void {
  current = chosen;
  window.localStorage.setItem(STORAGE_KEY, chosen);
  document.documentElement.lang = chosen;
}

/** A sentence in the reader's language; `{name}` is filled from `values`. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  const found = current === "zh" ? (ZH[text] ?? text) : text;
  return found.replace(/\{(\w+)\}/g, (mark, name: string) => `${values[name] ?? mark}`);
}

/** A sentence that `say` is given later, by name. */
export function messageKey(text: string): string {
  return text;
}
