// The lines of a log, with their numbers or tasks, and times, beside them. Only the rows in view are in the document.

import { type KeyboardEvent, type MouseEvent, type ReactNode, useMemo, useRef } from "react";
import { formatClock, formatTime } from "../format";
import { useDarkMode } from "../theme";
import { styleToCss } from "./ansi";
import { clipRuns, findLineIndex, type LogLine } from "./logLines";
import { LINE_HEIGHT, type LogScrolling, useLogScrolling } from "./useLogScrolling";
import { type RowPlace, useLogSelection } from "./useLogSelection";
import { useWrapColumns } from "./useWrapColumns";
import { findRowIndex, type LogRow, wrapLines } from "./wrapLines";

/** What stands beside a line. */
export interface LineGutter {
  /** Since when it was printed, Unix seconds. */
  time?: number | undefined;
  /** Its number, or another name for its place, and the address of the line. */
  place?: { text: string; href: string; title: string; colour?: string | undefined };
}

/** The gutter of a log: the widths of its columns, in characters (0: without the column), and its contents. */
export interface GutterLayout {
  timeColumns: number;
  placeColumns: number;
  /** Returns what stands beside each of these lines, which are in the log's order. */
  contents: (lines: LogLine[]) => LineGutter[];
}

/** The width of a time, characters. */
export const TIME_COLUMNS = 8;

interface RowsOptions {
  wrap: boolean;
  gutter: GutterLayout;
  /** The number of the line to begin with; else the first line if `atTop`, else the last line. */
  foundLine: number | undefined;
  atTop: boolean;
}

interface LogRowsState extends RowsOptions {
  lines: LogLine[];
  rows: LogRow[];
  scrolling: LogScrolling;
}

/** Returns the rows of a log and where it is scrolled to. */
export function useLogRows(lines: LogLine[], options: RowsOptions): LogRowsState {
  const { wrap, gutter, foundLine, atTop } = options;
  const container = useRef<HTMLDivElement>(null);
  const columns = useWrapColumns(container, wrap, gutterWidth(gutter));
  const rows = useMemo(() => wrapLines(lines, columns), [lines, columns]);
  const scrolling = useLogScrolling(container, rows, foundLine, atTop);
  return { ...options, lines, rows, scrolling };
}

/** Returns the width of a gutter with the spaces after its columns, in characters. */
function gutterWidth({ timeColumns, placeColumns }: GutterLayout): number {
  return [timeColumns, placeColumns].reduce((sum, columns) => sum + (columns ? columns + 1 : 0), 0);
}

interface Props {
  state: LogRowsState;
  height: string;
  label: string;
  /** Called when the address of a line is chosen; without it the address is opened. */
  onChooseLine?: ((href: string) => void) | undefined;
}

export function LogRows({ state, height, label, onChooseLine }: Props): ReactNode {
  const { lines, rows, scrolling, gutter, foundLine } = state;
  const { container, firstRow, rowCount, onScroll } = scrolling;
  const { keptPlaces, selectAll, onCopy } = useLogSelection(container, lines);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(event);
    if (event.key !== "a" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    selectAll();
  };
  const onClick = (event: MouseEvent): void => {
    const link = (event.target as HTMLElement).closest<HTMLAnchorElement>("a.place");
    if (!link || !onChooseLine || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onChooseLine(link.getAttribute("href") ?? "");
  };
  const visible = visibleRows(rows, firstRow, rowCount, keptPlaces);
  const firstRows = visible.map(({ row }) => row).filter(({ from }) => from === 0);
  const gutters = gutter.contents(firstRows.map(({ line }) => line));
  const gutterByLine = new Map(firstRows.map(({ number }, at) => [number, gutters[at]]));
  const topLine = rows[Math.floor((container.current?.scrollTop ?? 0) / LINE_HEIGHT)]?.number;
  const focusable = gutterByLine.has(foundLine ?? NaN) ? foundLine : topLine;
  return (
    <div
      className="log"
      ref={container}
      role="log"
      aria-live="off"
      aria-label={label}
      tabIndex={0}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onClick={onClick}
      onCopy={onCopy}
      style={{ height }}
    >
      <div className="rows" style={{ height: rows.length * LINE_HEIGHT }}>
        {visible.map(({ row, hiddenAbove }) => (
          <div
            key={`${row.number} ${row.from}`}
            data-line={row.number}
            data-from={row.from}
            className={`${row.line.level} ${row.number === foundLine ? "found" : ""}`}
            style={{ marginTop: hiddenAbove * LINE_HEIGHT }}
          >
            <Gutter
              layout={gutter}
              contents={row.from === 0 ? gutterByLine.get(row.number) : undefined}
              focusable={row.number === focusable}
            />
            <RowText row={row} />
          </div>
        ))}
      </div>
    </div>
  );
}

/** Moves the focus from the address of a line to that of the next line or the one before. */
function moveFocus(event: KeyboardEvent): void {
  const link = (event.target as HTMLElement).closest("a.place");
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>("a.place")];
  const next = links[links.findIndex((each) => each === link) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!link || !next) return;
  event.preventDefault();
  next.focus();
}

interface GutterProps {
  layout: GutterLayout;
  contents: LineGutter | undefined;
  focusable: boolean;
}

function Gutter({ layout, contents, focusable }: GutterProps): ReactNode {
  const { timeColumns, placeColumns } = layout;
  const width = (columns: number): { width: string } => ({ width: `${columns}ch` });
  if (!timeColumns && !placeColumns) return null;
  return (
    <span className="gutter">
      {placeColumns > 0 && (
        <span className="place-column" style={width(placeColumns)}>
          {contents?.place && (
            <a
              className="place"
              href={contents.place.href}
              title={contents.place.title}
              style={{ color: contents.place.colour }}
              tabIndex={focusable ? 0 : -1}
              draggable={false}
            >
              {contents.place.text}
            </a>
          )}
        </span>
      )}
      {timeColumns > 0 && (
        <span style={width(timeColumns)} title={contents?.time ? formatTime(contents.time) : ""}>
          {contents?.time ? formatClock(contents.time) : ""}
        </span>
      )}
    </span>
  );
}

function RowText({ row }: { row: LogRow }): ReactNode {
  const dark = useDarkMode();
  const { line, from, to } = row;
  if (!line.runs.length) return <span className="text">{line.text.slice(from, to) || " "}</span>;
  const parts: ReactNode[] = [];
  let shown = from;
  for (const run of clipRuns(line.runs, from, to)) {
    if (from + run.from > shown) parts.push(line.text.slice(shown, from + run.from));
    parts.push(
      <span key={run.from} style={styleToCss(run.style, dark)}>
        {line.text.slice(from + run.from, from + run.to)}
      </span>,
    );
    shown = from + run.to;
  }
  return (
    <span className="text">
      {parts}
      {line.text.slice(shown, to)}
    </span>
  );
}

interface VisibleRow {
  row: LogRow;
  /** How many rows directly above are not in the document. */
  hiddenAbove: number;
}

/** Returns `count` rows from `begin` on, and the rows that hold the places `keptPlaces`, in the log's order. */
function visibleRows(rows: LogRow[], begin: number, count: number, keptPlaces: RowPlace[]): VisibleRow[] {
  const end = Math.min(rows.length, begin + count);
  const inView = Array.from({ length: Math.max(0, end - begin) }, (_, index) => begin + index);
  const outOfView = keptPlaces
    .map(({ number, from }) => findRowIndex(rows, findLineIndex(rows, number), number, from))
    .filter((index) => index < begin || index >= end);
  const indexes = [...new Set([...inView, ...outOfView])].sort((one, other) => one - other);
  return indexes.flatMap((index, order) => {
    const row = rows[index];
    return row ? [{ row, hiddenAbove: index - (indexes[order - 1] ?? -1) - 1 }] : [];
  });
}
