// Joins the chunks of a log to one text and keeps its offset in the stream, in bytes: a character may have several.

import type { LogChunk } from "../api";

/** The first character of a chunk, and its offset in the stream. */
interface OffsetMark {
  at: number;
  offset: number;
}

export interface LogText {
  text: string;
  marks: OffsetMark[];
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
  firstLine: 0,
  from: 0,
  to: 0,
  size: 0,
  attempts: [],
  error: "",
  complete: false,
};

/** Returns the log with a chunk at its end. If it becomes too long, whole chunks are dropped from its beginning. */
export function appendChunk(last: LogText, part: LogChunk): LogText {
  const text = last.text + part.text;
  const known = last.marks.at(-1) ?? { at: -MARK_INTERVAL, offset: 0 };
  const fresh = last.text.length - known.at >= MARK_INTERVAL ? [{ at: last.text.length, offset: part.offset }] : [];
  const marks = [...last.marks, ...fresh];
  const kept = text.length > MAX_CHARACTERS ? marks.filter((mark) => mark.at >= text.length - MAX_CHARACTERS) : marks;
  const { at, offset } = kept[0] ?? { at: 0, offset: last.from };
  return {
    text: text.slice(at),
    marks: kept.map((mark) => ({ ...mark, at: mark.at - at })),
    firstLine: last.firstLine + countLineEnds(text.slice(0, at)),
    from: offset,
    to: part.next,
    size: part.size,
    attempts: part.attempts ?? last.attempts,
    error: "",
    complete: part.complete,
  };
}

/** Returns the log with a chunk at its beginning. If it becomes too long, whole chunks are dropped from its end. */
export function prependChunk(last: LogText, part: LogChunk): LogText {
  const later = last.marks.map((mark) => ({ ...mark, at: mark.at + part.text.length }));
  const marks = [{ at: 0, offset: part.offset }, ...later.filter((mark) => mark.at > 0)];
  const whole = part.text + last.text;
  const end =
    whole.length > MAX_CHARACTERS ? marks.findLast((mark) => mark.at > 0 && mark.at <= MAX_CHARACTERS) : undefined;
  return {
    ...last,
    text: end ? whole.slice(0, end.at) : whole,
    marks: end ? marks.filter((mark) => mark.at < end.at) : marks,
    firstLine: last.firstLine - countLineEnds(part.text),
    from: part.offset,
    to: end ? end.offset : last.to,
    error: "",
    complete: last.complete && !end,
  };
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
