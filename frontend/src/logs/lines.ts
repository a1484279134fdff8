// A log's text as lines: what a terminal would have overwritten is left out, so are its colours.

export type Level = "error" | "warning" | "";

export interface LogLine {
  /** It stays the line's own when others are loaded before it, or left out. */
  number: number;
  text: string;
  level: Level;
}

const LONGEST = 4000;
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g;
/** As howdah.logs.search has them, so that what is found is what is coloured. */
const ERRORS = [
  "error",
  "Error",
  "ERROR",
  "xception",
  "Traceback",
  "FATAL",
  "Fatal",
  "fatal",
  "CRITICAL",
  "Segmentation fault",
  ": E ",
];
const WARNINGS = ["warn", "Warn", "WARN", ": W "];
const ERROR_BEGINS = /^[EF][01]\d[0-3]\d /;
const WARNING_BEGINS = /^W[01]\d[0-3]\d /;

/** The lines of a text; `first` is the number of the first. */
export function linesOf(text: string, first = 0): LogLine[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line, index) => ({ number: first + index, ...lineOf(line) }));
}

/** The index of the line of this number, or else of the one after it, or of the last. */
export function indexOf(lines: LogLine[], number: number): number {
  let [low, high] = [0, lines.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.number ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lineOf(raw: string): Omit<LogLine, "number"> {
  const whole = raw.length > LONGEST * 4 ? `${raw.slice(0, LONGEST)} … (+${raw.length - LONGEST})` : raw;
  const shown = whole.replace(ESCAPES, "").replace(/\r+$/, "");
  const text = shown.slice(shown.lastIndexOf("\r") + 1);
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)} … (+${text.length - LONGEST})` : text;
  return { text: cut, level: levelOf(cut) };
}

function levelOf(text: string): Level {
  const holds = (word: string): boolean => text.includes(word);
  if (ERROR_BEGINS.test(text) || ERRORS.some(holds)) return "error";
  return WARNING_BEGINS.test(text) || WARNINGS.some(holds) ? "warning" : "";
}

/** Lines of at least this level; all, for an empty one. */
export function atLeast(lines: LogLine[], level: string): LogLine[] {
  if (level === "error") return lines.filter((line) => line.level === "error");
  return level === "warning" ? lines.filter((line) => line.level) : lines;
}
