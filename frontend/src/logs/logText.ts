// Joins the chunks of a log to one text and keeps its offset in the stream, in bytes: a character may have several.

import type { LogChunk } from "../api";

/** The first character of a chunk, and its offset in the stream. */
interface OffsetMark {
  at: number;
  offset: number;
}

/** What is known of a line and of the lines after it, by the line's number in the text (see `firstLine`). */
export interface LineMark<Value> {
  line: number;
  value: Value;
}

export interface LogText {
  text: string;
  marks: OffsetMark[];
  /** The numbers of lines in the stream, undefined where they are not known. */
  numbering: LineMark<number | undefined>[];
  /** Since when lines were printed, Unix seconds. */
  times: LineMark<number>[];
  /** To which stream lines were printed, if the log is of both. */
  streams: LineMark<string>[];
  /** The number of the text's first line. Line 0 is the line with which reading began, so lines before it have negative
   * numbers, and a line keeps its number when chunks are added or dropped. */
  firstLine: number;
  /** The offset in the stream where `text` begins, bytes. */
  from: number;
  /** The offset in the stream where `text` ends, bytes. */
  to: number;
  size: number;
  attempts: number[];
  error: string;
  /** Nothing more will be written. */
  complete: boolean;
}

/** The most characters that are kept. */
const MAX_CHARACTERS = 4 << 20;
/** The least number of characters between two marks. */
const MARK_INTERVAL = 16384;
export const EMPTY_LOG: LogText = {
  text: "",
  marks: [],
  numbering: [],
  times: [],
  streams: [],
  firstLine: 0,
  from: 0,
  to: 0,
  size: 0,
  attempts: [],
  error: "",
  complete: false,
};

/** Returns the log with a chunk at its end. If it becomes too long, whole chunks are dropped from its beginning. */
export function appendChunk(log: LogText, chunk: LogChunk): LogText {
  const text = log.text + chunk.text;
  const lastMark = log.marks.at(-1) ?? { at: -MARK_INTERVAL, offset: 0 };
  const newMarks =
    log.text.length - lastMark.at >= MARK_INTERVAL ? [{ at: log.text.length, offset: chunk.offset }] : [];
  const marks = [...log.marks, ...newMarks];
  const keptMarks =
    text.length > MAX_CHARACTERS ? marks.filter((mark) => mark.at >= text.length - MAX_CHARACTERS) : marks;
  const { at, offset } = keptMarks[0] ?? { at: 0, offset: log.from };
  const firstLine = log.firstLine + countLineEnds(text.slice(0, at));
  const line = log.firstLine + countLineEnds(log.text);
  const numbers = appendNumber(log.numbering, line, chunk, chunk.offset === log.to && log.text !== "");
  return {
    text: text.slice(at),
    marks: keptMarks.map((mark) => ({ ...mark, at: mark.at - at })),
    numbering: dropUnused(numbers, firstLine),
    times: dropUnused([...log.times, ...marksFrom(chunk.times, line)], firstLine),
    streams: dropUnused([...log.streams, ...marksFrom(chunk.streams, line)], firstLine),
    firstLine,
    from: offset,
    to: chunk.next,
    size: chunk.size,
    attempts: chunk.attempts ?? log.attempts,
    error: "",
    complete: chunk.complete,
  };
}

/** Returns the log with a chunk at its beginning. If it becomes too long, whole chunks are dropped from its end. */
export function prependChunk(log: LogText, chunk: LogChunk): LogText {
  const shiftedMarks = log.marks.map((mark) => ({ ...mark, at: mark.at + chunk.text.length }));
  const marks = [{ at: 0, offset: chunk.offset }, ...shiftedMarks.filter((mark) => mark.at > 0)];
  const joined = chunk.text + log.text;
  const firstLine = log.firstLine - countLineEnds(chunk.text);
  const end =
    joined.length > MAX_CHARACTERS ? marks.findLast((mark) => mark.at > 0 && mark.at <= MAX_CHARACTERS) : undefined;
  return {
    ...log,
    text: end ? joined.slice(0, end.at) : joined,
    marks: end ? marks.filter((mark) => mark.at < end.at) : marks,
    numbering: [{ line: firstLine, value: chunk.first_line ?? undefined }, ...log.numbering],
    times: [...marksFrom(chunk.times, firstLine), ...log.times],
    streams: [...marksFrom(chunk.streams, firstLine), ...log.streams],
    firstLine,
    from: chunk.offset,
    to: end ? end.offset : log.to,
    error: "",
    complete: log.complete && !end,
  };
}

/** Adds the number of a chunk's first line, unless it follows from the number of an earlier line. */
function appendNumber(
  numbering: LogText["numbering"],
  line: number,
  chunk: LogChunk,
  adjoins: boolean,
): LogText["numbering"] {
  const value = chunk.first_line ?? undefined;
  const follows = adjoins && (value === undefined || value === valueWithSteps(numbering, line));
  return follows || (value === undefined && !numbering.length) ? numbering : [...numbering, { line, value }];
}

/** Returns what a chunk, whose first line has the number `line`, says of its lines. */
function marksFrom<Value>(pairs: [number, Value][] | undefined, line: number): LineMark<Value>[] {
  return (pairs ?? []).map(([number, value]) => ({ line: line + number, value }));
}

/** Drops the marks that say nothing about the line `firstLine` and the lines after it. */
function dropUnused<Value>(marks: LineMark<Value>[], firstLine: number): LineMark<Value>[] {
  const first = marks.findLastIndex(({ line }) => line <= firstLine);
  return first > 0 ? marks.slice(first) : marks;
}

/** Returns what is known of a line: the last mark at or before it. */
export function markOf<Value>(marks: LineMark<Value>[], line: number): LineMark<Value> | undefined {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((marks[middle]?.line ?? 0) <= line) low = middle + 1;
    else high = middle;
  }
  return marks[low - 1];
}

function valueWithSteps(numbering: LogText["numbering"], line: number): number | undefined {
  const mark = markOf(numbering, line);
  return mark?.value === undefined ? undefined : mark.value + line - mark.line;
}

/** Returns the number in the stream, from 1, of a line of the text; undefined if it is not known. */
export function streamLineNumber(log: LogText, line: number): number | undefined {
  return valueWithSteps(log.numbering, line);
}

/** Returns since when a line of the text was printed, Unix seconds; undefined if it is not known. */
export function lineTime(log: LogText, line: number): number | undefined {
  return markOf(log.times, line)?.value;
}

/** Returns the offsets in the stream, in bytes, of the characters at these places of the text, which must ascend. */
export function byteOffsets({ text, marks, from }: LogText, places: number[]): number[] {
  let known: OffsetMark = { at: 0, offset: from };
  const encoder = new TextEncoder();
  return places.map((place) => {
    const mark = marks.findLast(({ at }) => at <= place);
    if (mark && mark.at > known.at) known = mark;
    known = { at: place, offset: known.offset + encoder.encode(text.slice(known.at, place)).length };
    return known.offset;
  });
}

function countLineEnds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Returns the number of the line that holds the byte at `place` of the stream. */
export function lineNumberAt({ text, marks, firstLine, from }: LogText, place: number): number {
  const mark = marks.findLast(({ offset }) => offset <= place) ?? { at: 0, offset: from };
  const data = new TextEncoder().encode(text.slice(mark.at));
  const rest = new TextDecoder().decode(data.slice(0, Math.max(0, place - mark.offset)));
  return firstLine + countLineEnds(text.slice(0, mark.at)) + countLineEnds(rest);
}
