// The parts of a log as one text whose beginning has a known place in the stream, in bytes: characters have several.

import type { LogPart } from "../api";

/** A character of the text that begins a part, and its place in the stream. */
interface Mark {
  at: number;
  offset: number;
}

export interface LogText {
  text: string;
  marks: Mark[];
  /** Where `text` begins, in bytes of the stream. */
  from: number;
  size: number;
  attempts: number[];
  error: string;
  /** Nothing comes any more. */
  complete: boolean;
}

const MOST = 4 << 20;
/** Characters between two marks, at least. */
const APART = 16384;
export const EMPTY: LogText = { text: "", marks: [], from: 0, size: 0, attempts: [], error: "", complete: false };

/** The log with a part behind it; of one that becomes too long the beginning is left out, up to where a part begins. */
export function added(last: LogText, part: LogPart): LogText {
  const text = last.text + part.text;
  const known = last.marks.at(-1) ?? { at: -APART, offset: 0 };
  const fresh = last.text.length - known.at >= APART ? [{ at: last.text.length, offset: part.offset }] : [];
  const marks = [...last.marks, ...fresh];
  const kept = text.length > MOST ? marks.filter((mark) => mark.at >= text.length - MOST) : marks;
  const { at, offset } = kept[0] ?? { at: 0, offset: last.from };
  return {
    text: text.slice(at),
    marks: kept.map((mark) => ({ ...mark, at: mark.at - at })),
    from: offset,
    size: part.size,
    attempts: part.attempts ?? last.attempts,
    error: "",
    complete: part.complete,
  };
}

/** The log with a part before it. */
export function before(last: LogText, part: LogPart): LogText {
  const marks = last.marks.map((mark) => ({ ...mark, at: mark.at + part.text.length }));
  const text = part.text + last.text;
  return { ...last, text, marks: [{ at: 0, offset: part.offset }, ...marks], from: part.offset };
}
