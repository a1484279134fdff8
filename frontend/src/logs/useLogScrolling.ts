// Finds the rows of a log that are in view. The view follows the end until somebody scrolls up; then it stays at the
// line at its top, even if lines are loaded before that line.

import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import { findLineIndex } from "./logLines";
import type { LogRow } from "./wrapLines";

export const LINE_HEIGHT = 18;
/** How many rows above and below the view are also in the document. */
const OVERSCAN_ROWS = 20;

export interface LogScrolling {
  container: RefObject<HTMLDivElement | null>;
  /** The first row that is in the document, and the number of rows that are. */
  firstRow: number;
  rowCount: number;
  onScroll: () => void;
  scrollToTop: () => void;
  scrollToBottom: () => void;
}

/** Begins at the line with the number `foundLine`, else at the first line if `atTop`, else at the last line. */
export function useLogScrolling(
  container: RefObject<HTMLDivElement | null>,
  rows: LogRow[],
  foundLine: number | undefined,
  atTop: boolean,
): LogScrolling {
  const atEnd = useRef(foundLine === undefined && !atTop);
  const positioned = useRef(false);
  const topLine = useRef({ number: 0, below: 0 });
  const [firstRow, setBegin] = useState(0);
  const onScroll = (): void => {
    const element = container.current;
    if (!element) return;
    atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - LINE_HEIGHT;
    const index = Math.floor(element.scrollTop / LINE_HEIGHT);
    const number = rows[index]?.number ?? 0;
    topLine.current = { number, below: element.scrollTop - findLineIndex(rows, number) * LINE_HEIGHT };
    setBegin(Math.max(0, index - OVERSCAN_ROWS));
  };
  const scrollTo = (top: number): void => {
    container.current?.scrollTo(0, top);
    onScroll();
  };
  useLayoutEffect(() => {
    const place = container.current;
    if (!place || !rows.length) return;
    if (foundLine !== undefined && !positioned.current) scrollTo((findLineIndex(rows, foundLine) - 5) * LINE_HEIGHT);
    else if (atEnd.current) scrollTo(place.scrollHeight);
    else if (positioned.current)
      scrollTo(findLineIndex(rows, topLine.current.number) * LINE_HEIGHT + topLine.current.below);
    else scrollTo(0);
    if (foundLine !== undefined && !positioned.current) atEnd.current = false;
    positioned.current = true;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- runs when the rows change
  }, [rows, foundLine]);
  const rowCount = Math.ceil((container.current?.clientHeight ?? 600) / LINE_HEIGHT) + 2 * OVERSCAN_ROWS;
  return {
    container,
    firstRow,
    rowCount,
    onScroll,
    scrollToTop: () => scrollTo(0),
    scrollToBottom: () => scrollTo(container.current?.scrollHeight ?? 0),
  };
}
