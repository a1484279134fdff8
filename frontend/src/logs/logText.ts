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
export function appendChunk(log: LogText, chunk: LogChunk): LogText {
  const text = log.text + chunk.text;
  const lastMark = log.marks.at(-1) ?? { at: -MARK_INTERVAL, offset: 0 };
  const newMarks =
    log.text.length - lastMark.at >= MARK_INTERVAL ? [{ at: log.text.length, offset: chunk.offset }] : [];
  const marks = [...log.marks, ...newMarks];
  const keptMarks =
    text.length > MAX_CHARACTERS ? marks.filter((mark) => mark.at >= text.length - MAX_CHARACTERS) : marks;
  const { at, offset } = keptMarks[0] ?? { at: 0, offset: log.from };
  return {
    text: text.slice(at),
    marks: keptMarks.map((mark) => ({ ...mark, at: mark.at - at })),
    firstLine: log.firstLine + countLineEnds(text.slice(0, at)),
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
  const end =
    joined.length > MAX_CHARACTERS ? marks.findLast((mark) => mark.at > 0 && mark.at <= MAX_CHARACTERS) : undefined;
  return {
    ...log,
    text: end ? joined.slice(0, end.at) : joined,
    marks: end ? marks.filter((mark) => mark.at < end.at) : marks,
    firstLine: log.firstLine - countLineEnds(chunk.text),
    from: chunk.offset,
    to: end ? end.offset : log.to,
    error: "",
    complete: log.complete && !end,
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
