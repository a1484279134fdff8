// Splits a log's text into lines, without colours and without text that a terminal would have overwritten.

type LogLevel = "error" | "warning" | "";

export interface LogLine {
  /** The line keeps its number when lines before it are loaded or dropped. */
  number: number;
  text: string;
  level: LogLevel;
}

const MAX_LINE_LENGTH = 4000;
/** Also one that the end of the line has cut off, as in howdah.logs.output_text. */
const ANSI_ESCAPES =
  /\u001b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|\][^\u0007\u001b]*(?:\u0007|\u001b\\|\u001b?$)|[@-Z\\^_=>]|$)/g;
/** The words of howdah.logs.search, so that the page colours the lines that a search finds. */
const ERROR_WORDS = [
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
const WARNING_WORDS = ["warn", "Warn", "WARN", ": W "];
const GLOG_ERROR = /^[EF][01]\d[0-3]\d /;
const GLOG_WARNING = /^W[01]\d[0-3]\d /;

/** Splits a text into lines; `first` is the number of the first line. */
export function parseLogLines(text: string, first = 0): LogLine[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line, index) => ({ number: first + index, ...parseLine(line) }));
}

/** Returns the index of the line with this number, or of the next line, or of the last. */
export function findLineIndex(lines: LogLine[], number: number): number {
  let [low, high] = [0, lines.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.number ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function parseLine(raw: string): Omit<LogLine, "number"> {
  const shortened =
    raw.length > MAX_LINE_LENGTH * 4 ? `${raw.slice(0, MAX_LINE_LENGTH)} … (+${raw.length - MAX_LINE_LENGTH})` : raw;
  const plainText = shortened.replace(ANSI_ESCAPES, "").replace(/\r+$/, "");
  const text = plainText.slice(plainText.lastIndexOf("\r") + 1);
  const limited =
    text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH)} … (+${text.length - MAX_LINE_LENGTH})` : text;
  return { text: limited, level: detectLevel(limited) };
}

function detectLevel(text: string): LogLevel {
  const holds = (word: string): boolean => text.includes(word);
  if (GLOG_ERROR.test(text) || ERROR_WORDS.some(holds)) return "error";
  return GLOG_WARNING.test(text) || WARNING_WORDS.some(holds) ? "warning" : "";
}

/** Returns the lines of at least this level; all lines if the level is empty. */
export function filterByLevel(lines: LogLine[], level: string): LogLine[] {
  if (level === "error") return lines.filter((line) => line.level === "error");
  return level === "warning" ? lines.filter((line) => line.level) : lines;
}
