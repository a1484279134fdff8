// What is selected of a log's lines, of which only those in view are in the document, and its text.

import { type ClipboardEvent, type RefObject, useEffect, useLayoutEffect, useState } from "react";
import { indexOf, type LogLine } from "./lines";

/** A place in the lines. */
interface Place {
  index: number;
  offset: number;
}

interface Selected {
  /** The numbers of lines that must stay in the document, for a selection begins or ends there. */
  kept: number[];
  selectAll: () => void;
  onCopy: (event: ClipboardEvent) => void;
}

export function useSelection(box: RefObject<HTMLDivElement | null>, lines: LogLine[]): Selected {
  const [kept, setKept] = useState<number[]>([]);
  const [wanted, setWanted] = useState(false);
  useEffect(() => {
    const changed = (): void => {
      const found = endsIn(box.current);
      setKept((last) => (last.join() === found.join() ? last : found));
    };
    document.addEventListener("selectionchange", changed);
    return () => document.removeEventListener("selectionchange", changed);
  }, [box]);
  useLayoutEffect(() => {
    if (!wanted) return; // the first line and the last are in the document now
    setWanted(false);
    const rows = box.current?.querySelectorAll("[data-line]");
    const [first, last] = [rows?.item(0), rows?.item(rows.length - 1)];
    if (first && last) window.getSelection()?.setBaseAndExtent(first, 0, last, last.childNodes.length);
  }, [wanted, box]);
  const selectAll = (): void => {
    const [first, last] = [lines[0], lines.at(-1)];
    if (!first || !last) return;
    setKept([first.number, last.number]);
    setWanted(true);
  };
  const onCopy = (event: ClipboardEvent): void => {
    const text = selectedText(box.current, lines);
    if (text === undefined) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  return { kept, selectAll, onCopy };
}

/** Where one has clicked is an end, too: another click with Shift selects from there. */
function endsIn(box: HTMLElement | null): number[] {
  const selection = window.getSelection();
  if (!selection) return [];
  const rows = [selection.anchorNode, selection.focusNode].map((node) => rowOf(box, node));
  return rows.flatMap((row) => (row ? [Number(row.dataset.line)] : []));
}

function rowOf(box: HTMLElement | null, node: Node | null): HTMLElement | undefined {
  const element = node instanceof HTMLElement ? node : node?.parentElement;
  const row = element?.closest<HTMLElement>("[data-line]");
  return row && box?.contains(row) ? row : undefined;
}

/** The text of the selection; undefined where it is not all within the box. */
function selectedText(box: HTMLElement | null, lines: LogLine[]): string | undefined {
  const selection = window.getSelection();
  if (!box || !selection?.rangeCount || selection.isCollapsed) return undefined;
  const range = selection.getRangeAt(0);
  const from = placeOf(box, lines, range.startContainer, range.startOffset);
  const to = placeOf(box, lines, range.endContainer, range.endOffset);
  if (!from || !to) return undefined;
  const texts = lines.slice(from.index, to.index + 1).map((line) => line.text);
  const last = texts.length - 1;
  texts[last] = texts[last]?.slice(0, to.offset) ?? "";
  texts[0] = texts[0]?.slice(from.offset) ?? "";
  return texts.join("\n");
}

function placeOf(box: HTMLElement, lines: LogLine[], node: Node, offset: number): Place | undefined {
  const row = rowOf(box, node);
  if (row) {
    const index = indexOf(lines, Number(row.dataset.line));
    if (node.nodeType === Node.TEXT_NODE) return { index, offset };
    return { index, offset: offset ? (lines[index]?.text.length ?? 0) : 0 };
  }
  if (!box.contains(node)) return undefined;
  const next = node.childNodes[offset]; // between the rows
  const begun = next && rowOf(box, next);
  return begun ? { index: indexOf(lines, Number(begun.dataset.line)), offset: 0 } : endOf(lines);
}

function endOf(lines: LogLine[]): Place {
  return { index: lines.length - 1, offset: lines.at(-1)?.text.length ?? 0 };
}
