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
  /** The number of the text's first line, counted from the line with which reading began: lines before that one have
   * negative numbers, and a line keeps its number whatever is loaded or left out. */
  first: number;
  /** Where `text` begins, in bytes of the stream. */
  from: number;
  /** Where it ends. */
  to: number;
  size: number;
  attempts: number[];
  error: string;
  /** Nothing comes any more. */
  complete: boolean;
}

/** Characters that are kept. */
const MOST = 4 << 20;
/** Characters between two marks, at least. */
const APART = 16384;
export const EMPTY: LogText = {
  text: "",
  marks: [],
  first: 0,
  from: 0,
  to: 0,
  size: 0,
  attempts: [],
  error: "",
  complete: false,
};

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
    first: last.first + lineEnds(text.slice(0, at)),
    from: offset,
    to: part.next,
    size: part.size,
    attempts: part.attempts ?? last.attempts,
    error: "",
    complete: part.complete,
  };
}

/** The log with a part before it; of one that becomes too long the end is left out, from where a part begins. */
export function before(last: LogText, part: LogPart): LogText {
  const later = last.marks.map((mark) => ({ ...mark, at: mark.at + part.text.length }));
  const marks = [{ at: 0, offset: part.offset }, ...later.filter((mark) => mark.at > 0)];
  const whole = part.text + last.text;
  const end = whole.length > MOST ? marks.findLast((mark) => mark.at > 0 && mark.at <= MOST) : undefined;
  return {
    ...last,
    text: end ? whole.slice(0, end.at) : whole,
    marks: end ? marks.filter((mark) => mark.at < end.at) : marks,
    first: last.first - lineEnds(part.text),
    from: part.offset,
    to: end ? end.offset : last.to,
    error: "",
    complete: last.complete && !end,
  };
}

function lineEnds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** The number of the line that holds a place in the stream (bytes). */
export function lineAt({ text, marks, first, from }: LogText, place: number): number {
  const mark = marks.findLast(({ offset }) => offset <= place) ?? { at: 0, offset: from };
  const data = new TextEncoder().encode(text.slice(mark.at));
  const rest = new TextDecoder().decode(data.slice(0, Math.max(0, place - mark.offset)));
  return first + lineEnds(text.slice(0, mark.at)) + lineEnds(rest);
}
