// Cuts lines into rows that fit the view, so that every row has the same height and is found without measuring.

import type { LogLine } from "./logLines";

export interface LogRow {
  line: LogLine;
  /** The number of the line. */
  number: number;
  /** Which part of the line's text the row shows. */
  from: number;
  to: number;
}

const TAB_COLUMNS = 8;
const NARROW_TEXT = /^[\u0020-\u007e\u00a0-\u02ff]*$/;
/** Where characters begin that may be wider than one column of a monospaced font, and wider than two. */
const WIDE = 0x1100;
const WIDER = 0x1f000;

/** Returns the rows of lines; without `columns` each line is one row. */
export function wrapLines(lines: LogLine[], columns: number | undefined): LogRow[] {
  return lines.flatMap((line) => {
    const length = line.text.length;
    if (!columns || (length <= columns && NARROW_TEXT.test(line.text)))
      return { line, number: line.number, from: 0, to: length };
    const starts = NARROW_TEXT.test(line.text) ? everyColumns(length, columns) : rowStarts(line.text, columns);
    return starts.map((from, at) => ({ line, number: line.number, from, to: starts[at + 1] ?? length }));
  });
}

function everyColumns(length: number, columns: number): number[] {
  return Array.from({ length: Math.ceil(length / columns) }, (_, row) => row * columns);
}

/** Returns where the rows of a text begin in which characters have different widths. */
function rowStarts(text: string, columns: number): number[] {
  const starts = [0];
  let [at, used] = [0, 0];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    const tab = TAB_COLUMNS - (used % TAB_COLUMNS);
    const width = code === 9 ? tab : code >= WIDER ? 3 : code >= WIDE ? 2 : 1;
    if (used + width > columns && used) {
      starts.push(at);
      used = 0;
    }
    used += code === 9 && !used ? TAB_COLUMNS : width;
    at += character.length;
  }
  return starts;
}

/** Returns the index of the row that shows this place of a line's text. */
export function findRowIndex(rows: LogRow[], firstOfLine: number, number: number, offset: number): number {
  let index = firstOfLine;
  while (rows[index + 1]?.number === number && (rows[index + 1]?.from ?? 0) <= offset) index += 1;
  return index;
}
