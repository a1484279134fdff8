// The values of lines at a place of the horizontal axis, for the table below a chart and beside the pointer.

import { formatNumber } from "../format";
import { t } from "../language";
import type { ChartLine } from "./chartLines";

type FormatValue = (value: number) => string;

/** What is shown where a line has no value. */
const NO_VALUE = "–";

interface ValueRow {
  line: ChartLine;
  /** The place of the line's point that is nearest to the pointer. */
  x: number;
  y: number | null;
  text: (formatValue: FormatValue) => string;
}

/** Returns the lines with their values at the pointer, the nearest first, pinned ones before all others. */
export function nearestLines(lines: ChartLine[], { x, y }: { x: number; y: number }): ValueRow[] {
  const rows = lines.flatMap((line): ValueRow[] => {
    if (line.faint || !line.x.length) return [];
    const nearest = pointAt(line.x, x);
    if (nearest === undefined) return [{ line, x, y: null, text: () => NO_VALUE }];
    const index = line.thresholds ? pointAtHeight(line, nearest, y) : nearest;
    const text = (format: FormatValue): string => valueWithRange(line, index, format);
    return [{ line, x: line.x[index] as number, y: line.y[index] ?? null, text }];
  });
  const distance = (row: ValueRow): number => (row.y === null ? Number.POSITIVE_INFINITY : Math.abs(row.y - y));
  const first = ({ line }: ValueRow): number => (line.pinned ? 0 : 1);
  return rows.sort((a, b) => first(a) - first(b) || distance(a) - distance(b) || 0);
}

/** Returns the line's value at `x`, or its last one. */
export function valueAt(line: ChartLine, x: number | null, formatValue: FormatValue): string {
  const index = x === null ? line.y.length - 1 : pointAt(line.x, x);
  return index === undefined ? NO_VALUE : valueOfPoint(line, index, formatValue);
}

function valueOfPoint(line: ChartLine, index: number, formatValue: FormatValue): string {
  const y = line.y[index];
  if (typeof y !== "number") return nonFiniteName(line, line.x[index] as number) ?? NO_VALUE;
  const threshold = line.thresholds?.[index];
  if (threshold === undefined) return formatValue(y);
  return t("precision {precision}, threshold {threshold}", { precision: formatValue(y), threshold: formatNumber(threshold) });
}

function valueWithRange(line: ChartLine, index: number, format: FormatValue): string {
  const value = valueOfPoint(line, index, format);
  const [low, high] = [line.low?.[index], line.high?.[index]];
  if (typeof low !== "number" || typeof high !== "number" || low === high) return value;
  return `${value} (${format(low)} … ${format(high)})`;
}

function nonFiniteName(line: ChartLine, x: number): string | undefined {
  return line.nonFinite?.find((mark) => mark.x === x)?.name;
}

/** Returns the index of the point nearest to `x`; undefined if `x` is further from the line than its points are from
 * each other. (Tasks do not report their last points at the same moment.) */
function pointAt(xs: ArrayLike<number>, x: number): number | undefined {
  const last = xs.length - 1;
  if (last < 0) return undefined;
  const [from, to] = [xs[0] as number, xs[last] as number];
  const mean = last ? (to - from) / last : 0;
  const before = last ? Math.max(mean, (xs[1] as number) - from) : 0;
  const after = last ? Math.max(mean, to - (xs[last - 1] as number)) : 0;
  return x < from - before || x > to + after ? undefined : nearestIndex(xs, x);
}

/** Returns which of the points of a PR curve with the same recall is nearest to `y`. */
function pointAtHeight(line: ChartLine, nearest: number, y: number): number {
  const distance = (index: number): number => Math.abs((line.y[index] ?? Number.POSITIVE_INFINITY) - y);
  const same = line.y.map((_, index) => index).filter((index) => line.x[index] === line.x[nearest]);
  return same.reduce((best, index) => (distance(index) < distance(best) ? index : best), nearest);
}

function nearestIndex(xs: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle;
    else high = middle;
  }
  return Math.abs((xs[high] ?? 0) - x) < Math.abs((xs[low] ?? 0) - x) ? high : low;
}
