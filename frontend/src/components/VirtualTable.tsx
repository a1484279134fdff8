// A table of any length: only the rows in view are in the document. A row's first cell should hold its link.

import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

export interface TableColumn<T> {
  key: string;
  title: string;
  /** A track size of CSS grid: `120px`, `minmax(120px, 1fr)`. */
  width: string;
  cell: (row: T) => ReactNode;
  /** Returns the value by which rows are sorted. Without it the column cannot be sorted. */
  sortValue?: (row: T) => number | string;
  alignEnd?: boolean;
  /** Cuts the beginning of a text that does not fit, for names that differ at their end. */
  truncateStart?: boolean;
  /** The column is shown by default in windows of at least this many pixels. */
  minWindowWidth?: number;
  tooltip?: (row: T) => string;
  /** A class of the column's cells, and of its head. */
  className?: string;
  /** What stands at the column's head in place of its title. */
  header?: ReactNode;
}

export interface Sorting {
  key: string;
  descending: boolean;
}

interface Props<T> {
  label: string;
  columns: TableColumn<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  height?: string;
  /** The sorting, if it is kept outside the table. */
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  /** The keys of the columns by which the server sorts the rows. Without them the table sorts the rows itself. */
  sortable?: string[];
  /** The key of the row that is unfolded: its details are below its cells. */
  unfoldedKey?: string | undefined;
  details?: (row: T) => ReactNode;
}

const ROW_HEIGHT = 34;
const OVERSCAN_ROWS = 12;
/** Fewer rows than OVERSCAN_ROWS: the rows in view are found as if none was unfolded. */
const DETAILS_HEIGHT = 5 * ROW_HEIGHT;
const UNFOLDED_ROW = {
  height: ROW_HEIGHT + DETAILS_HEIGHT,
  gridTemplateRows: `${ROW_HEIGHT}px auto`,
  alignContent: "start",
};
const UNSORTED: Sorting = { key: "", descending: false };
/** How far tables were scrolled, by address and label: who goes back finds the rows that were in view. */
const scrollPositions = new Map<string, number>();
const MAX_SCROLL_POSITIONS = 100;

/** Returns the key of a table's position: its address, whatever is selected there. */
function positionKey(label: string): string {
  return `${window.location.hash.replace(/([?&])selected=[^&]*/, "$1")} ${label}`;
}

function rememberScrollPosition(label: string, position: number): void {
  const key = positionKey(label);
  scrollPositions.delete(key);
  scrollPositions.set(key, position);
  const oldest = scrollPositions.keys().next().value;
  if (scrollPositions.size > MAX_SCROLL_POSITIONS && oldest !== undefined) scrollPositions.delete(oldest);
}

export function VirtualTable<T>(props: Props<T>): ReactNode {
  const { label, columns, rows, rowKey, height = "calc(100vh - 290px)" } = props;
  const [localSorting, setLocalSorting] = useState<Sorting>(UNSORTED);
  const sorting = props.sorting ?? localSorting;
  const container = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 40 });
  const sorted = useSortedRows(rows, columns, props.sortable ? UNSORTED : sorting);
  const unfolded = useMemo(
    () => (props.unfoldedKey === undefined ? -1 : sorted.findIndex((row) => rowKey(row) === props.unfoldedKey)),
    [sorted, rowKey, props.unfoldedKey],
  );
  useLayoutEffect(() => {
    const position = scrollPositions.get(positionKey(label));
    if (container.current && position) container.current.scrollTop = position;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- later the reader scrolls
  }, []);
  useEffect(() => {
    const element = container.current;
    if (!element) return;
    const updateView = (): void => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW_HEIGHT) - OVERSCAN_ROWS);
      const count = Math.ceil(element.clientHeight / ROW_HEIGHT) + 2 * OVERSCAN_ROWS;
      setView((last) => (last.first === first && last.count === count ? last : { first, count }));
    };
    const onScroll = (): void => {
      rememberScrollPosition(label, element.scrollTop);
      updateView();
    };
    updateView();
    element.addEventListener("scroll", onScroll, { passive: true });
    const observer = new ResizeObserver(updateView);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, [label]);
  const gridColumns = { gridTemplateColumns: columns.map((column) => column.width).join(" ") };
  // Where the window is narrower than this, the table scrolls sideways; its first column stays.
  const minWidth = columns.reduce((sum, { width }) => sum + Number(/\d+(?=px)/.exec(width)?.[0] ?? 0), 0);
  const visibleRows = sorted.slice(view.first, view.first + view.count);
  return (
    <div
      className="virtual-table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={{ maxHeight: height }}
      ref={container}
      tabIndex={0}
    >
      <div role="rowgroup" className="header-rows" style={{ minWidth }}>
        <div role="row" className="table-row" style={gridColumns} aria-rowindex={1}>
          {columns.map((column) => (
            <ColumnHeader
              key={column.key}
              column={column}
              sorting={sorting}
              sortable={props.sortable ? props.sortable.includes(column.key) : Boolean(column.sortValue)}
              onSort={props.onSort ?? setLocalSorting}
            />
          ))}
        </div>
      </div>
      <div role="rowgroup" className="rows" style={{ height: sorted.length * ROW_HEIGHT + (unfolded < 0 ? 0 : DETAILS_HEIGHT), minWidth }}>
        {visibleRows.map((row, index) => {
          const number = view.first + index;
          const below = unfolded >= 0 && number > unfolded ? DETAILS_HEIGHT : 0;
          return (
            <div
              role="row"
              className="table-row"
              key={rowKey(row)}
              aria-rowindex={number + 2}
              style={{ ...gridColumns, top: number * ROW_HEIGHT + below, ...(number === unfolded ? UNFOLDED_ROW : {}) }}
            >
              {columns.map((column) => (
                <div
                  role="cell"
                  key={column.key}
                  className={cellClass(column)}
                  title={column.tooltip?.(row)}
                >
                  {column.truncateStart ? <bdi>{column.cell(row)}</bdi> : column.cell(row)}
                </div>
              ))}
              {number === unfolded && (
                <div role="cell" style={{ gridColumn: "1 / -1" }}>
                  {props.details?.(row)}
                </div>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface ColumnHeaderProps<T> {
  column: TableColumn<T>;
  sorting: Sorting;
  sortable: boolean;
  onSort: (sorting: Sorting) => void;
}

function ColumnHeader<T>({ column, sorting, sortable, onSort }: ColumnHeaderProps<T>): ReactNode {
  const isSorted = sorting.key === column.key;
  const ariaSort = isSorted ? (sorting.descending ? "descending" : "ascending") : undefined;
  const mark = isSorted ? (sorting.descending ? " ▾" : " ▴") : "";
  const toggleSorting = (): void =>
    onSort({ key: column.key, descending: isSorted ? !sorting.descending : Boolean(column.alignEnd) });
  return (
    <div
      role="columnheader"
      aria-sort={ariaSort}
      aria-label={column.header ? column.title : undefined}
      className={column.header ? column.className : column.alignEnd ? "align-end" : ""}
      title={column.header ? undefined : column.title}
    >
      {column.header ?? (sortable ? (
        <button type="button" onClick={toggleSorting}>
          {column.title}
          {mark}
        </button>
      ) : (
        column.title
      ))}
    </div>
  );
}

function cellClass<T>({ alignEnd, truncateStart, className = "" }: TableColumn<T>): string {
  return alignEnd ? "align-end" : truncateStart ? "truncate-start" : className;
}

function useSortedRows<T>(rows: T[], columns: TableColumn<T>[], sorting: Sorting): T[] {
  return useMemo(() => {
    const sortValue = columns.find((column) => column.key === sorting.key)?.sortValue;
    if (!sortValue) return rows;
    const sign = sorting.descending ? -1 : 1;
    const compare = (a: number | string, b: number | string): number =>
      typeof a === "string" && typeof b === "string"
        ? a.localeCompare(b, undefined, { numeric: true })
        : Number(a) - Number(b);
    return [...rows].sort((a, b) => sign * compare(sortValue(a), sortValue(b)));
  }, [rows, columns, sorting.key, sorting.descending]);
}
