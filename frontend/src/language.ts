// Translates the page's texts; the English text is the key. tests/unit/test_page_language.py finds what is missing.

import catalogue from "../generated/zh.json";

export type Language = "en" | "zh";

const STORAGE_KEY = "howdah.language";

function initialLanguage(): Language {
  const stored = window.localStorage.getItem(STORAGE_KEY);
  if (stored === "en" || stored === "zh") return stored;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

const CHINESE: Record<string, string> = catalogue;
let current: Language = initialLanguage();
document.documentElement.lang = current;

export function currentLanguage(): Language {
  return current;
}

/** Changes the language. The caller renders the page again. */
export function setLanguage(chosen: Language): void {
  current = chosen;
  window.localStorage.setItem(STORAGE_KEY, chosen);
  document.documentElement.lang = chosen;
}

/** Translates a text to the user's language and replaces `{name}` by values. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  const found = current === "zh" ? (CHINESE[text] ?? text) : text;
  return found.replace(/\{(\w+)\}/g, (mark, name: string) => `${values[name] ?? mark}`);
}

/** Marks a text that is passed to `t` later, so that the test of the translations finds it. */
export function messageKey(text: string): string {
  return text;
}
