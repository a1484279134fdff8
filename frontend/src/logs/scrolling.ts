// Which of a log's lines are in view. The view stays at the end until one scrolls up; then it stays at the line that is
// read, whatever is loaded before it.

import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import { indexOf, type LogLine } from "./lines";

export const LINE_HEIGHT = 18;
/** Lines above and below the view that are in the document, too. */
const MORE = 20;

interface Scrolling {
  box: RefObject<HTMLDivElement | null>;
  /** The first line that is in the document, and how many are. */
  begin: number;
  count: number;
  onScroll: () => void;
  toTop: () => void;
  toBottom: () => void;
}

/** `found` is the number of a line to begin at; `atTop`: begin at the first line that is there, else at the last. */
export function useScrolling(lines: LogLine[], found: number | undefined, atTop: boolean): Scrolling {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(found === undefined && !atTop);
  const shown = useRef(false);
  const read = useRef({ number: 0, below: 0 });
  const [begin, setBegin] = useState(0);
  const onScroll = (): void => {
    const place = box.current;
    if (!place) return;
    atEnd.current = place.scrollTop + place.clientHeight >= place.scrollHeight - LINE_HEIGHT;
    const index = Math.floor(place.scrollTop / LINE_HEIGHT);
    read.current = { number: lines[index]?.number ?? 0, below: place.scrollTop - index * LINE_HEIGHT };
    setBegin(Math.max(0, index - MORE));
  };
  const scroll = (top: number): void => {
    if (!box.current) return;
    box.current.scrollTop = top;
    onScroll();
  };
  useLayoutEffect(() => {
    const place = box.current;
    if (!place || !lines.length) return;
    if (found !== undefined && !shown.current) scroll((indexOf(lines, found) - 5) * LINE_HEIGHT);
    else if (atEnd.current) scroll(place.scrollHeight);
    else if (shown.current) scroll(indexOf(lines, read.current.number) * LINE_HEIGHT + read.current.below);
    else scroll(0);
    if (found !== undefined && !shown.current) atEnd.current = false;
    shown.current = true;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- as often as the lines change
  }, [lines, found]);
  const count = Math.ceil((box.current?.clientHeight ?? 600) / LINE_HEIGHT) + 2 * MORE;
  return { box, begin, count, onScroll, toTop: () => scroll(0), toBottom: () => scroll(box.current?.scrollHeight ?? 0) };
}
