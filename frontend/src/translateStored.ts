// Translates English sentences that the server has stored, with the rules of howdah.locale.stored_sentences.

import catalogue from "../generated/zh.json";
import { currentLanguage } from "./language";

/** A stored English sentence. React cannot render it: `translateStored` shows it, `storedText` is to be searched. */
export interface StoredSentence {
  readonly [written]: "in English";
}
declare const written: unique symbol;

const MAX_DEPTH = 5;
const MAX_LENGTH = 1000;
const MAX_CACHED = 5000;
const PLACEHOLDER = /\{(\w+)\}/;
const cache = new Map<string, string>();
let templates: [RegExp, string][] = [];

/** Translates a sentence whose template is known; returns others unchanged. */
export function translateStored(sentence: StoredSentence): string {
  const text = storedText(sentence);
  if (currentLanguage() !== "zh" || !text) return text;
  const cached = cache.get(text);
  if (cached !== undefined) return cached;
  if (cache.size > MAX_CACHED) cache.clear();
  const translated = translateNested(text, MAX_DEPTH);
  cache.set(text, translated);
  return translated;
}

export function storedText(sentence: StoredSentence): string {
  return sentence as unknown as string;
}

function translateNested(text: string, depth: number): string {
  if (!depth || text.length > MAX_LENGTH) return text;
  if (!templates.length) templates = compileTemplates();
  for (const [pattern, chinese] of templates) {
    const match = pattern.exec(text);
    if (!match) continue;
    const values = match.groups ?? {};
    return chinese.replace(/\{(\w+)\}/g, (mark, name: string) => translateNested(values[name] ?? mark, depth - 1));
  }
  return text;
}

/** Compiles the templates; those with the longest fixed text come first, because they match most exactly. */
function compileTemplates(): [RegExp, string][] {
  const fixedLength = (template: string): number => template.replace(/\{\w+\}/g, "").length;
  const ordered = Object.entries(catalogue.templates).sort(([a], [b]) => fixedLength(b) - fixedLength(a));
  return ordered.map(([template, chinese]) => [templatePattern(template), chinese]);
}

function templatePattern(template: string): RegExp {
  const placeholders: Record<string, string> = catalogue.placeholders;
  const parts = template.split(PLACEHOLDER);
  const regexParts = parts.map((part, at) =>
    at % 2 ? `(?<${part}>${placeholders[part] ?? ".+?"})` : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  );
  return new RegExp(`^${regexParts.join("")}$`, "s");
}
