// Selects and copies log lines, although only the lines in view are in the document.

import { type ClipboardEvent, type RefObject, useEffect, useLayoutEffect, useState } from "react";
import { findLineIndex, type LogLine } from "./logLines";

/** A position in the lines. */
interface TextPosition {
  index: number;
  offset: number;
}

interface LogSelection {
  /** The numbers of lines that must stay in the document, because a selection begins or ends in them. */
  keptLines: number[];
  selectAll: () => void;
  onCopy: (event: ClipboardEvent) => void;
}

export function useLogSelection(container: RefObject<HTMLDivElement | null>, lines: LogLine[]): LogSelection {
  const [keptLines, setKeptLines] = useState<number[]>([]);
  const [selectingAll, setSelectingAll] = useState(false);
  useEffect(() => {
    const onSelectionChange = (): void => {
      const endLines = selectionEndLines(container.current);
      setKeptLines((last) => (last.join() === endLines.join() ? last : endLines));
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
    setKeptLines([first.number, last.number]);
    setSelectingAll(true);
  };
  const onCopy = (event: ClipboardEvent): void => {
    const text = selectedText(container.current, lines);
    if (text === undefined) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  return { keptLines, selectAll, onCopy };
}

/** Returns the lines in which the selection begins and ends. A click alone is an empty selection that Shift extends. */
function selectionEndLines(box: HTMLElement | null): number[] {
  const selection = window.getSelection();
  if (!selection) return [];
  const rows = [selection.anchorNode, selection.focusNode].map((node) => closestRow(box, node));
  return rows.flatMap((row) => (row ? [Number(row.dataset.line)] : []));
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
    const index = findLineIndex(lines, Number(row.dataset.line));
    if (node.nodeType === Node.TEXT_NODE) return { index, offset };
    return { index, offset: offset ? (lines[index]?.text.length ?? 0) : 0 };
  }
  if (!box.contains(node)) return undefined;
  const next = node.childNodes[offset]; // between the rows
  const nextRow = next && closestRow(box, next);
  return nextRow ? { index: findLineIndex(lines, Number(nextRow.dataset.line)), offset: 0 } : endPosition(lines);
}

function endPosition(lines: LogLine[]): TextPosition {
  return { index: lines.length - 1, offset: lines.at(-1)?.text.length ?? 0 };
}
