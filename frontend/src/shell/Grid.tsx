// A table of any length: only the rows in view are in the document. A row's first cell should be its link.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";

export interface Column<T> {
  key: string;
  title: string;
  /** As in CSS grid: `120px`, `minmax(120px, 1fr)`. */
  width: string;
  cell: (row: T) => ReactNode;
  /** What rows are sorted by; without it the column sorts nothing. */
  by?: (row: T) => number | string;
  end?: boolean;
  /** What does not fit is cut at its beginning: the end tells such names apart. */
  tail?: boolean;
  /** Shown without being chosen in windows of at least so many pixels. */
  from?: number;
  hint?: (row: T) => string;
}

export interface Sorting {
  key: string;
  down: boolean;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  height?: string;
  /** Given by who sorts elsewhere, at the server. */
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  sortable?: string[];
}

const ROW = 34;
const MORE = 12;

export function Grid<T>(props: Props<T>): ReactNode {
  const { label, columns, rows, rowKey, height = "calc(100vh - 290px)" } = props;
  const [own, setOwn] = useState<Sorting>({ key: "", down: false });
  const outer = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 40 });
  const sorted = useSorted(rows, columns, props.sorting ? { key: "", down: false } : own);
  useEffect(() => {
    const box = outer.current;
    if (!box) return;
    const look = (): void => {
      const first = Math.max(0, Math.floor(box.scrollTop / ROW) - MORE);
      const count = Math.ceil(box.clientHeight / ROW) + 2 * MORE;
      setView((last) => (last.first === first && last.count === count ? last : { first, count }));
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    const watching = new ResizeObserver(look);
    watching.observe(box);
    return () => {
      box.removeEventListener("scroll", look);
      watching.disconnect();
    };
  }, []);
  const template = { gridTemplateColumns: columns.map((column) => column.width).join(" ") };
  const sorting = props.sorting ?? own;
  const shown = sorted.slice(view.first, view.first + view.count);
  return (
    <div
      className="grid"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={{ maxHeight: height }}
      ref={outer}
      tabIndex={0}
    >
      <div role="rowgroup" className="heads">
        <div role="row" className="line" style={template} aria-rowindex={1}>
          {columns.map((column) => (
            <Head
              key={column.key}
              column={column}
              sorting={sorting}
              sortable={props.sortable ? props.sortable.includes(column.key) : Boolean(column.by)}
              onSort={props.onSort ?? setOwn}
            />
          ))}
        </div>
      </div>
      <div role="rowgroup" className="rows" style={{ height: sorted.length * ROW }}>
        {shown.map((row, index) => (
          <div
            role="row"
            className="line"
            key={rowKey(row)}
            aria-rowindex={view.first + index + 2}
            style={{ ...template, top: (view.first + index) * ROW }}
          >
            {columns.map((column) => (
              <div
                role="cell"
                key={column.key}
                className={column.end ? "end" : column.tail ? "tail" : ""}
                title={column.hint?.(row)}
              >
                {column.tail ? <bdi>{column.cell(row)}</bdi> : column.cell(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

interface HeadProps<T> {
  column: Column<T>;
  sorting: Sorting;
  sortable: boolean;
  onSort: (sorting: Sorting) => void;
}

function Head<T>({ column, sorting, sortable, onSort }: HeadProps<T>): ReactNode {
  const mine = sorting.key === column.key;
  const told = mine ? (sorting.down ? "descending" : "ascending") : undefined;
  const mark = mine ? (sorting.down ? " ▾" : " ▴") : "";
  const turn = (): void => onSort({ key: column.key, down: mine ? !sorting.down : Boolean(column.end) });
  return (
    <div role="columnheader" aria-sort={told} className={column.end ? "end" : ""}>
      {sortable ? (
        <button type="button" onClick={turn}>
          {column.title}
          {mark}
        </button>
      ) : (
        column.title
      )}
    </div>
  );
}

function useSorted<T>(rows: T[], columns: Column<T>[], sorting: Sorting): T[] {
  return useMemo(() => {
    const by = columns.find((column) => column.key === sorting.key)?.by;
    if (!by) return rows;
    const sign = sorting.down ? -1 : 1;
    const order = (a: number | string, b: number | string): number =>
      typeof a === "string" && typeof b === "string"
        ? a.localeCompare(b, undefined, { numeric: true })
        : Number(a) - Number(b);
    return [...rows].sort((a, b) => sign * order(by(a), by(b)));
  }, [rows, columns, sorting.key, sorting.down]);
}
