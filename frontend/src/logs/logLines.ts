// Splits a log's text into lines, as a terminal shows them: without text that was overwritten.

import { type StyledRun, stripEscapes, styledRuns } from "./ansi";
import { type LineMark, markOf } from "./logText";

type LogLevel = "error" | "warning" | "";

export interface LogLine {
  /** The line keeps its number when lines before it are loaded or dropped. */
  number: number;
  /** Where the line begins in the log's text, and where the next one begins. */
  from: number;
  to: number;
  text: string;
  level: LogLevel;
  /** Which parts of `text` are coloured, bold or underlined. */
  runs: StyledRun[];
}

const MAX_LINE_LENGTH = 4000;
/** The words of howdah.logs.levels, so that the page colours the lines that a search finds. */
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
/** What launchers write before each line of a rank (src/howdah/logs/levels.py). */
const RANK =
  /^\s*(?:\[[\w.:,-]{1,40}\](?:<\w{1,20}>)?|\([^()]{1,60} pid=\d{1,9}[^()]{0,60}\)|\w{1,20}[_:-]?\d{1,6}\s*[:|>]|\d{1,6}:)[: |>]*/;
const TRACEBACK_BEGIN = "Traceback (most recent call last):";
const GLOG_ERROR = /^[EF][01]\d[0-3]\d /;
const GLOG_WARNING = /^W[01]\d[0-3]\d /;

/** Splits a text into lines; `first` is the number of the first line. */
export function parseLogLines(text: string, first = 0): LogLine[] {
  const lines: LogLine[] = [];
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from);
    const to = end < 0 ? text.length : end + 1;
    const raw = text.slice(from, end < 0 ? to : end);
    lines.push({ number: first + lines.length, from, to, ...parseLine(raw) });
    from = to;
  }
  return lines;
}

/** Returns the index of the line with this number, or of the next line, or of the last. */
export function findLineIndex(lines: { number: number }[], number: number): number {
  let [low, high] = [0, lines.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.number ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Parses one line without its end. */
export function parseLine(raw: string): Pick<LogLine, "text" | "level" | "runs"> {
  const lastWritten = raw.replace(/\r+$/, "");
  const visible = lastWritten.slice(lastWritten.lastIndexOf("\r") + 1);
  const shortened = visible.slice(0, MAX_LINE_LENGTH * 4);
  const plainText = stripEscapes(shortened);
  const end = Math.min(plainText.length, MAX_LINE_LENGTH);
  const left = plainText.length - end + visible.length - shortened.length;
  const text = plainText.slice(0, end) + (left ? ` … (+${left})` : "");
  const runs = shortened.includes("\u001b") ? clipRuns(styledRuns(shortened), 0, end) : NO_RUNS;
  return { text, level: detectLevel(text), runs };
}

const NO_RUNS: StyledRun[] = [];

/** Returns what of the runs lies from `start` to `end` of a text, with places that count from `start`. */
export function clipRuns(runs: StyledRun[], start: number, end: number): StyledRun[] {
  return runs
    .map(({ from, to, style }) => ({ from: Math.max(from, start) - start, to: Math.min(to, end) - start, style }))
    .filter(({ from, to }) => from < to);
}

function detectLevel(text: string): LogLevel {
  const holds = (word: string): boolean => text.includes(word);
  if (GLOG_ERROR.test(text) || ERROR_WORDS.some(holds)) return "error";
  return GLOG_WARNING.test(text) || WARNING_WORDS.some(holds) ? "warning" : "";
}

/** Returns the lines of at least this level, with whole tracebacks; all lines if the level is empty. `streams` says to
 * which stream lines were printed: those of another one may come between the lines of a traceback. */
export function filterByLevel(lines: LogLine[], level: string, streams: LineMark<string>[] = []): LogLine[] {
  if (!level) return lines;
  const ofStreams = new Map<string, Set<string>>();
  return lines.flatMap((line) => {
    const stream = markOf(streams, line.number)?.value ?? "";
    const open = ofStreams.get(stream) ?? new Set<string>(); // what stands before each line of a traceback, such as a rank
    ofStreams.set(stream, open);
    const begin = line.text.indexOf(TRACEBACK_BEGIN);
    let inTraceback = begin >= 0;
    if (inTraceback) {
      const before = line.text.slice(0, begin);
      open.add(RANK.exec(before)?.[0] === before ? before : "");
    } else {
      const fitting = [...open].filter((each) => line.text.startsWith(each)).sort((a, b) => b.length - a.length)[0];
      if (fitting !== undefined && (fitting || !RANK.test(line.text))) {
        const rest = line.text.slice(fitting.length);
        inTraceback = rest.trim() !== "";
        if (!/^[ \t]/.test(rest)) open.delete(fitting); // the line with the exception, or a line of something else
      }
    }
    if (inTraceback) return line.level === "error" ? line : { ...line, level: "error" as const };
    return line.level === "error" || line.level === level ? line : [];
  });
}
