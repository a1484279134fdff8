import { toPlainText } from "../format";

/** Returns a value of the spec as people write it: a command as a line, a list of words with commas. */
export function specText(path: string, value: unknown): string {
  if (!Array.isArray(value) || !value.length || !value.every((each) => typeof each === "string")) return toPlainText(value);
  if (!/(^|\.)command$/.test(path)) return value.join(", ");
  return value.map((word: string) => (/^[^\s'"$]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
}
