// Selects and copies log lines, although only the lines in view are in the document.

import { type ClipboardEvent, type RefObject, useEffect, useLayoutEffect, useState } from "react";
import { findLineIndex, type LogLine } from "./logLines";

/** A position in the lines. */
interface TextPosition {
  index: number;
  offset: number;
}

/** Names a row: the number of its line, and the place in the line's text where the row begins. */
export interface RowPlace {
  number: number;
  from: number;
}

interface LogSelection {
  /** Rows that must stay in the document, because a selection begins or ends in them. */
  keptPlaces: RowPlace[];
  selectAll: () => void;
  onCopy: (event: ClipboardEvent) => void;
}

export function useLogSelection(container: RefObject<HTMLDivElement | null>, lines: LogLine[]): LogSelection {
  const [keptPlaces, setKeptPlaces] = useState<RowPlace[]>([]);
  const [selectingAll, setSelectingAll] = useState(false);
  useEffect(() => {
    const onSelectionChange = (): void => {
      const ends = selectionEnds(container.current);
      setKeptPlaces((last) => (JSON.stringify(last) === JSON.stringify(ends) ? last : ends));
    };
    document.addEventListener("selectionchange", onSelectionChange);
    return () => document.removeEventListener("selectionchange", onSelectionChange);
  }, [container]);
  useLayoutEffect(() => {
    if (!selectingAll) return; // the first line and the last are in the document now
    setSelectingAll(false);
    const rows = container.current?.querySelectorAll("[data-line]");
    const [first, last] = [rows?.item(0), rows?.item(rows.length - 1)];
    if (first && last) window.getSelection()?.setBaseAndExtent(first, 0, last, last.childNodes.length);
  }, [selectingAll, container]);
  const selectAll = (): void => {
    const [first, last] = [lines[0], lines.at(-1)];
    if (!first || !last) return;
    setKeptPlaces([
      { number: first.number, from: 0 },
      { number: last.number, from: last.text.length },
    ]);
    setSelectingAll(true);
  };
  const onCopy = (event: ClipboardEvent): void => {
    const text = selectedText(container.current, lines);
    if (text === undefined) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  return { keptPlaces, selectAll, onCopy };
}

/** Returns the rows in which the selection begins and ends. A click alone is an empty selection that Shift extends. */
function selectionEnds(box: HTMLElement | null): RowPlace[] {
  const selection = window.getSelection();
  if (!selection) return [];
  const rows = [selection.anchorNode, selection.focusNode].map((node) => closestRow(box, node));
  return rows.flatMap((row) => (row ? [rowPlace(row)] : []));
}

function rowPlace(row: HTMLElement): RowPlace {
  return { number: Number(row.dataset.line), from: Number(row.dataset.from) };
}

function closestRow(box: HTMLElement | null, node: Node | null): HTMLElement | undefined {
  const element = node instanceof HTMLElement ? node : node?.parentElement;
  const row = element?.closest<HTMLElement>("[data-line]");
  return row && box?.contains(row) ? row : undefined;
}

/** Returns the text of the selection, or undefined if the selection reaches beyond the log. */
function selectedText(box: HTMLElement | null, lines: LogLine[]): string | undefined {
  const selection = window.getSelection();
  if (!box || !selection?.rangeCount || selection.isCollapsed) return undefined;
  const range = selection.getRangeAt(0);
  const from = textPositionOf(box, lines, range.startContainer, range.startOffset);
  const to = textPositionOf(box, lines, range.endContainer, range.endOffset);
  if (!from || !to) return undefined;
  const texts = lines.slice(from.index, to.index + 1).map((line) => line.text);
  const last = texts.length - 1;
  texts[last] = texts[last]?.slice(0, to.offset) ?? "";
  texts[0] = texts[0]?.slice(from.offset) ?? "";
  return texts.join("\n");
}

function textPositionOf(box: HTMLElement, lines: LogLine[], node: Node, offset: number): TextPosition | undefined {
  const row = closestRow(box, node);
  if (row) {
    const { number, from } = rowPlace(row);
    return { index: findLineIndex(lines, number), offset: from + offsetInRow(row, node, offset) };
  }
  if (!box.contains(node)) return undefined;
  const next = node.childNodes[offset]; // between the rows
  const nextRow = next && closestRow(box, next);
  if (!nextRow) return endPosition(lines);
  const { number, from } = rowPlace(nextRow);
  return { index: findLineIndex(lines, number), offset: from };
}

/** Returns how many characters of a row's text lie before a position in the row. */
function offsetInRow(row: HTMLElement, node: Node, offset: number): number {
  const text = row.querySelector(".text");
  if (!text) return 0;
  const before = document.createRange();
  before.selectNodeContents(text);
  if (text.contains(node)) before.setEnd(node, offset);
  else if (node !== row || offset < row.childNodes.length) return 0; // in the gutter, or before the text
  return before.toString().length;
}

function endPosition(lines: LogLine[]): TextPosition {
  return { index: lines.length - 1, offset: lines.at(-1)?.text.length ?? 0 };
}
