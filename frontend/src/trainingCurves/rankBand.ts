// The lines of many tasks as one: their median in a band of what is usual, and the tasks that differ as lines.

import type { ChartLine } from "../charts/chartLines";

/** As many tasks of a job as are drawn as a band unless the reader wants otherwise. */
export const MANY_LINES = 8;
/** Fewer lines are not drawn as a band: what is odd among two cannot be said. */
const MIN_LINES = 3;
const BUCKETS = 400;
const MAX_ODD = 5;
/** How many times the usual distance from the median makes a line odd, in a part of the axis. */
const MIN_RATIO = 5;
/** A distance below this share of the median counts for nothing. */
const MIN_SHARE = 0.02;
/** A line is odd if it is far away in at least this part of the axis. */
const ODD_PART = 0.2;

/** Returns the band of these lines, then the odd and the pinned ones as they are. Fewer than three lines stay. */
export function toBand(lines: ChartLine[], nameOf: (count: number) => string): ChartLine[] {
  const whole = lines.filter(({ faint, x }) => !faint && x.length);
  const [first] = whole;
  if (!first || whole.length < MIN_LINES) return lines;
  const { x, columns } = align(whole);
  const medians = x.map((_, at) => median(columns.map((column) => column[at] ?? null)));
  const odd = oddLines(columns, medians);
  const usual = columns.filter((_, index) => !odd.includes(index));
  const edge = (pick: (...values: number[]) => number): (number | null)[] =>
    x.map((_, at) => {
      const values = usual.flatMap((column) => column[at] ?? []);
      return values.length ? pick(...values) : null;
    });
  const { colour } = first;
  const band = { name: nameOf(whole.length), colour, x, y: medians, low: edge(Math.min), high: edge(Math.max) };
  return [band, ...whole.filter(({ pinned }, index) => pinned || odd.includes(index)).map(withoutRange)];
}

function withoutRange(line: ChartLine): ChartLine {
  const shown = { ...line };
  delete shown.low;
  delete shown.high;
  return shown;
}

/** The values of a line at the common places; null in a gap, undefined before it begins and after it has ended. */
type Column = (number | null | undefined)[];

/** Returns the values of all lines at common places: all places if there are few, else means of parts. Tasks report at
 * times of their own: a line without a point at a place, or in a part, has the value between its neighbours there. */
function align(lines: ChartLine[]): { x: number[]; columns: Column[] } {
  const places = [...new Set(lines.flatMap((line) => Array.from(line.x)))].sort((a, b) => a - b);
  const [from = 0, to = 0] = [places[0], places.at(-1)];
  const width = (to - from) / BUCKETS;
  if (places.length <= BUCKETS * 2 || !width) {
    return { x: places, columns: lines.map((line) => valuesAt(line, places)) };
  }
  const steps = places.every(Number.isInteger);
  const x = Array.from({ length: BUCKETS }, (_, bucket) => {
    const middle = from + (bucket + 0.5) * width;
    return steps ? Math.round(middle) : middle;
  });
  const columns = lines.map((line) => {
    const between = valuesAt(line, x);
    return bucketMeans(line, from, width).map((mean, bucket) => mean ?? between[bucket]);
  });
  return { x, columns };
}

/** Returns the line's values at these ascending places. The first and the last value hold as far as points are usually
 * from each other, because tasks neither begin nor end at the same moment. */
function valuesAt({ x, y }: ChartLine, places: number[]): Column {
  const [first, last] = [x[0] as number, x[x.length - 1] as number];
  const usual = (last - first) / Math.max(1, x.length - 1);
  let next = 0;
  return places.map((place) => {
    while (next < x.length && (x[next] as number) < place) next += 1;
    if (place < first - usual || place > last + usual) return undefined;
    if (next === 0 || next === x.length) return y[Math.min(next, x.length - 1)] ?? null;
    const [to, end] = [x[next] as number, y[next] ?? null];
    if (to === place || end === null) return end;
    const [from, start] = [x[next - 1] as number, y[next - 1] ?? null];
    return start === null ? null : start + ((end - start) * (place - from)) / (to - from);
  });
}

function bucketMeans(line: ChartLine, from: number, width: number): (number | null)[] {
  const sums = new Array<number>(BUCKETS).fill(0);
  const counts = new Array<number>(BUCKETS).fill(0);
  for (let at = 0; at < line.x.length; at += 1) {
    const value = line.y[at];
    if (typeof value !== "number") continue;
    const bucket = Math.min(BUCKETS - 1, Math.floor(((line.x[at] as number) - from) / width));
    sums[bucket] = (sums[bucket] as number) + value;
    counts[bucket] = (counts[bucket] as number) + 1;
  }
  return sums.map((sum, bucket) => (counts[bucket] ? sum / counts[bucket] : null));
}

/** Returns the indexes of the lines that are far from the median for a good part of the axis, the farthest ones. A line
 * in a gap of its own is far away: its values are no numbers. */
function oddLines(columns: Column[], medians: (number | null)[]): number[] {
  const far = columns.map(() => 0);
  let places = 0;
  medians.forEach((middle, at) => {
    if (middle === null) return;
    const values = columns.map((column) => column[at]);
    const distances = values.map((value) => (typeof value === "number" ? Math.abs(value - middle) : null));
    const usual = Math.max(median(distances) ?? 0, MIN_SHARE * Math.abs(middle), Number.MIN_VALUE);
    places += 1;
    distances.forEach((distance, index) => {
      if (values[index] === null || (distance ?? 0) > MIN_RATIO * usual) far[index] = (far[index] as number) + 1;
    });
  });
  return [...far.keys()]
    .filter((index) => (far[index] as number) >= Math.max(1, ODD_PART * places))
    .sort((a, b) => (far[b] as number) - (far[a] as number))
    .slice(0, MAX_ODD);
}

function median(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (!known.length) return null;
  const middle = known.length >> 1;
  return known.length % 2 ? (known[middle] as number) : ((known[middle - 1] as number) + (known[middle] as number)) / 2;
}
