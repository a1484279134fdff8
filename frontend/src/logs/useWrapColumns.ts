// Measures how many columns of text fit into a log.

import { type RefObject, useLayoutEffect, useState } from "react";

/** The padding of a row: before its gutter, before its text and after it, pixels. */
const ROW_PADDING = 30;
const SAMPLE = "0".repeat(100);
const MIN_COLUMNS = 10;

/** Returns the number of columns beside a gutter of `gutterColumns`, or undefined if lines are not wrapped. */
export function useWrapColumns(
  container: RefObject<HTMLDivElement | null>,
  wrap: boolean,
  gutterColumns: number,
): number | undefined {
  const [columns, setColumns] = useState<number>();
  useLayoutEffect(() => {
    const element = container.current;
    if (!element || !wrap) return;
    const measure = (): void => {
      const available = (element.clientWidth - ROW_PADDING) / characterWidth(element);
      setColumns(Math.max(MIN_COLUMNS, Math.floor(available) - gutterColumns));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [container, wrap, gutterColumns]);
  return wrap ? columns : undefined;
}

function characterWidth(element: HTMLElement): number {
  const sample = document.createElement("span");
  sample.textContent = SAMPLE;
  sample.style.visibility = "hidden";
  sample.style.position = "absolute";
  element.append(sample);
  const { width } = sample.getBoundingClientRect();
  sample.remove();
  return width / SAMPLE.length;
}
