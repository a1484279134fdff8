// The lines of a chart, and how they are aligned, smoothed and averaged.

import uPlot from "uplot";

export interface ChartLine {
  name: string;
  /** What the address calls the line if it can be pinned. */
  id?: string;
  x: ArrayLike<number>;
  y: (number | null)[];
  /** The range of the values that one drawn value stands for. */
  low?: (number | null)[];
  high?: (number | null)[];
  /** Values that are not finite, by name: `NaN`, `Infinity`, `-Infinity`. */
  nonFinite?: { x: number; name: string }[];
  /** The threshold that each point of a PR curve belongs to. */
  thresholds?: number[];
  /** The number of the line's colour. */
  colour: number;
  /** The number of the line's dashes; 0 is a whole line. */
  dash?: number;
  /** Drawn strongly, while lines that are not pinned become pale. */
  pinned?: boolean;
  /** Drawn pale behind the smoothed line of the same name, and not in the legend. */
  faint?: boolean;
  smoothed?: boolean;
  note?: string;
}

type ValueColumn = (number | null | undefined)[];

/** Returns the data for uPlot: the axis, then each line, with its range if it has one. */
export function toPlotData(lines: ChartLine[]): uPlot.AlignedData {
  const firstLine = lines[0];
  if (!firstLine) return [[], []];
  if (lines.every((line) => isSameAxis(line.x, firstLine.x)))
    return [firstLine.x, ...lines.flatMap(lineColumns)] as uPlot.AlignedData;
  const tables = lines.map((line) => [line.x, ...lineColumns(line)] as uPlot.AlignedData);
  return uPlot.join(tables);
}

/** Returns the line without the points that a logarithmic horizontal axis has no place for. */
export function dropBelowOrAtZero(line: ChartLine): ChartLine {
  const kept = Array.from(line.x, (_, index) => index).filter((index) => (line.x[index] as number) > 0);
  if (kept.length === line.x.length) return line;
  const pick = (values: (number | null)[]): (number | null)[] => kept.map((index) => values[index] ?? null);
  return {
    ...line,
    x: kept.map((index) => line.x[index] as number),
    y: pick(line.y),
    ...(line.low ? { low: pick(line.low) } : {}),
    ...(line.high ? { high: pick(line.high) } : {}),
    nonFinite: (line.nonFinite ?? []).filter(({ x }) => x > 0),
  };
}

function lineColumns(line: ChartLine): ValueColumn[] {
  return line.low && line.high ? [line.y, line.high, line.low] : [line.y];
}

function isSameAxis(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at] !== b[at]) return false;
  return true;
}

/** Returns the exponential moving average without bias to the first values, as TensorBoard smooths. */
export function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let mean = 0;
  let seen = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    seen += 1;
    mean = mean * weight + (1 - weight) * value;
    return mean / (1 - weight ** seen);
  });
}

/** Returns the sum of several lines, in `buckets` equal parts of their common time. */
export function sumLines(lines: ChartLine[], buckets: number, name: string, colour: number): ChartLine {
  const ends = lines.flatMap((line) =>
    line.x.length ? [line.x[0] as number, line.x[line.x.length - 1] as number] : [],
  );
  const from = Math.min(...ends);
  const width = Math.max(1, (Math.max(...ends) - from) / buckets);
  const sums = new Map<number, number>();
  for (const line of lines) {
    const means = new Map<number, { sum: number; count: number }>();
    for (let at = 0; at < line.x.length; at += 1) {
      const value = line.y[at];
      if (typeof value !== "number") continue;
      const bucket = Math.floor(((line.x[at] as number) - from) / width);
      const { sum, count } = means.get(bucket) ?? { sum: 0, count: 0 };
      means.set(bucket, { sum: sum + value, count: count + 1 });
    }
    for (const [bucket, { sum, count }] of means) sums.set(bucket, (sums.get(bucket) ?? 0) + sum / count);
  }
  const used = [...sums].sort(([a], [b]) => a - b);
  return { name, colour, x: used.map(([bucket]) => from + (bucket + 0.5) * width), y: used.map(([, sum]) => sum) };
}

/** Returns the mean of several lines, in `buckets` equal parts of their common time. */
export function averageLines(lines: ChartLine[], buckets: number, name: string, colour: number): ChartLine {
  const ends = lines.flatMap((line) =>
    line.x.length ? [line.x[0] as number, line.x[line.x.length - 1] as number] : [],
  );
  const from = Math.min(...ends);
  const width = Math.max(1, (Math.max(...ends) - from) / buckets);
  const sums = new Map<number, { sum: number; count: number; low: number; high: number }>();
  for (const line of lines) {
    for (let at = 0; at < line.x.length; at += 1) {
      const value = line.y[at];
      if (typeof value !== "number") continue;
      const bucket = Math.floor(((line.x[at] as number) - from) / width);
      const found = sums.get(bucket) ?? {
        sum: 0,
        count: 0,
        low: Number.POSITIVE_INFINITY,
        high: Number.NEGATIVE_INFINITY,
      };
      found.sum += value;
      found.count += 1;
      found.low = Math.min(found.low, line.low?.[at] ?? value);
      found.high = Math.max(found.high, line.high?.[at] ?? value);
      sums.set(bucket, found);
    }
  }
  const usedBuckets = [...sums.keys()].sort((a, b) => a - b);
  const averages = usedBuckets.map(
    (place) => sums.get(place) as { sum: number; count: number; low: number; high: number },
  );
  return {
    name,
    colour,
    x: usedBuckets.map((place) => from + (place + 0.5) * width),
    y: averages.map(({ sum, count }) => sum / count),
    low: averages.map(({ low }) => low),
    high: averages.map(({ high }) => high),
  };
}
