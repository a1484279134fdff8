// Sentences that the server has kept in English, in the reader's language; as howdah.locale.stored_sentences does it.

import table from "../../src/howdah/locale/stored_sentences.zh.json";
import { language } from "./language";

/** English as it was written down. No node of a page: it is shown by `retold`, and sought in by `english`, too. */
export interface Sentence {
  readonly [written]: "in English";
}
declare const written: unique symbol;

const DEPTH = 5;
const LONGEST = 1000;
const MOST_KEPT = 5000;
const PLACE = /\{(\w+)\}/;
const kept = new Map<string, string>();
let templates: [RegExp, string][] = [];

/** The sentence, as far as its template is known; else as it is. */
export function retold(sentence: Sentence): string {
  const text = english(sentence);
  if (language() !== "zh" || !text) return text;
  const known = kept.get(text);
  if (known !== undefined) return known;
  if (kept.size > MOST_KEPT) kept.clear();
  const found = inChinese(text, DEPTH);
  kept.set(text, found);
  return found;
}

export function english(sentence: Sentence): string {
  return sentence as unknown as string;
}

function inChinese(text: string, depth: number): string {
  if (!depth || text.length > LONGEST) return text;
  if (!templates.length) templates = compiled();
  for (const [pattern, chinese] of templates) {
    const found = pattern.exec(text);
    if (!found) continue;
    const values = found.groups ?? {};
    return chinese.replace(/\{(\w+)\}/g, (mark, name: string) => inChinese(values[name] ?? mark, depth - 1));
  }
  return text;
}

/** Those that say most of themselves come first. */
function compiled(): [RegExp, string][] {
  const own = (template: string): number => template.replace(/\{\w+\}/g, "").length;
  const ordered = Object.entries(table.sentences).sort(([a], [b]) => own(b) - own(a));
  return ordered.map(([template, chinese]) => [patternOf(template), chinese]);
}

function patternOf(template: string): RegExp {
  const kinds: Record<string, string> = table.kinds;
  const parts = template.split(PLACE);
  const made = parts.map((part, at) =>
    at % 2 ? `(?<${part}>${kinds[part] ?? ".+?"})` : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  );
  return new RegExp(`^${made.join("")}$`, "s");
}
