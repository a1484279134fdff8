// The options of uPlot for a chart of lines: axes, scales, series, and the marks of values that are not finite.

import uPlot from "uplot";
import { formatAxisTick, formatDuration } from "../format";
import { cssVariables, lineColour } from "../theme";
import type { ChartLine } from "./chartLines";

const LOGARITHMIC_SCALE = 3 as uPlot.Scale.Distr;

export type AxisKind = "step" | "time" | "relative" | "recall";

export interface ChartExtent {
  /** The first and the last value of the horizontal axis. */
  x?: [from: number, to: number];
  /** Small values are drawn on an axis from 0 to this value. */
  atLeast?: number;
  /** The distances between ticks of values. */
  steps?: number[];
  /** Leaves the most extreme values out of the range of the axis. */
  withoutOutliers?: boolean;
}

export interface PlotSettings {
  lines: ChartLine[];
  axis: AxisKind;
  log: boolean;
  logX: boolean;
  dark: boolean;
  height: number;
  width: number;
  formatValue: (value: number) => string;
  extent: () => ChartExtent;
  /** Returns the lines as they are now. */
  shownLines: () => ChartLine[];
  compact: boolean;
}

const MARK_SIZE = 4;
/** What is shown beside a single point: steps, seconds, a share. */
const AROUND: Record<AxisKind, number> = { step: 1, time: 30, relative: 30, recall: 0.1 };

/** Draws a cross at the lower edge for each NaN, and a wedge at the upper or lower edge for each infinity. */
export function drawNonFiniteMarks(plot: uPlot, lines: ChartLine[], dark: boolean): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const size = MARK_SIZE * window.devicePixelRatio;
  for (const line of lines) {
    if (line.faint) continue;
    ctx.strokeStyle = lineColour(line.colour, dark);
    ctx.lineWidth = 1.5 * window.devicePixelRatio;
    for (const { x, name } of line.nonFinite ?? []) {
      const centre = plot.valToPos(x, "x", true);
      if (centre < left || centre > left + width) continue;
      const up = name === "Infinity" ? 1 : -1;
      const edge = name === "Infinity" ? top + size : top + height - size;
      ctx.beginPath();
      ctx.moveTo(centre - size, edge + (name === "NaN" ? -size : 0));
      if (name === "NaN") {
        ctx.lineTo(centre + size, edge + size);
        ctx.moveTo(centre - size, edge + size);
        ctx.lineTo(centre + size, edge - size);
      } else {
        ctx.lineTo(centre + size, edge);
        ctx.lineTo(centre, edge - up * size);
        ctx.closePath();
      }
      ctx.stroke();
    }
  }
}

/** Returns the points with a gap on both sides: no line connects them, so a dot must show them. */
function isolatedPoints(plot: uPlot, series: number): number[] {
  const values = plot.data[series] as (number | null | undefined)[];
  const [first, last] = [plot.series[0]?.idxs?.[0] ?? 0, plot.series[0]?.idxs?.[1] ?? values.length - 1];
  const indexes: number[] = [];
  let before: number | null = null;
  for (let at = first; at <= last; at += 1) {
    const value = values[at];
    if (value === undefined) continue;
    if (value !== null && before === null && nextValue(values, at, last) === null) indexes.push(at);
    before = value;
  }
  return indexes;
}

function nextValue(values: (number | null | undefined)[], at: number, last: number): number | null {
  for (let after = at + 1; after <= last; after += 1) if (values[after] !== undefined) return values[after] ?? null;
  return null;
}

/** The share of values at each end that count as outliers, as in TensorBoard. */
const OUTLIERS = 0.05;

/** Returns the least and the greatest of the values from x `from` to `to`, without the most extreme ones of all lines
 * together. */
export function rangeWithoutOutliers(
  lines: ChartLine[],
  [from, to]: [number, number] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
): [number, number] | undefined {
  const values: number[] = [];
  for (const line of lines) {
    for (let at = 0; at < line.x.length; at += 1) {
      const x = line.x[at] as number;
      const y = line.y[at];
      if (typeof y === "number" && x >= from && x <= to) values.push(y);
    }
  }
  values.sort((a, b) => a - b);
  const cut = Math.floor(values.length * OUTLIERS);
  return values.length ? [values[cut] as number, values[values.length - 1 - cut] as number] : undefined;
}

/** Returns the ends of the horizontal axis: those of the reader if there are some, else those of the data, which has
 * these points. A single point has `around` on both sides. */
export function horizontalRange(
  points: ArrayLike<number>,
  [min, max]: [number, number],
  { zoom, logX, around }: { zoom?: [number, number] | undefined; logX: boolean; around: number },
): [number, number] {
  const only = points.length === 1 ? (points[0] as number) : undefined;
  if (!logX) return zoom ?? (only === undefined ? [min, max] : [only - around, only + around]);
  // uPlot seeks the ticks of a logarithmic axis without end from 0 or below. All points of one are above 0.
  const least = points[0] ?? min;
  if (zoom && zoom[0] > 0) return zoom;
  if (zoom && zoom[1] > least) return [least, zoom[1]];
  return only === undefined ? [min, max] : [only / 2, only * 2];
}

/** Returns the ends of the axis of values. */
function valueRange(min: number, max: number, atLeast = 0): uPlot.Range.MinMax {
  if (min === 0 && max === 0) return [0, atLeast || 1];
  if (min >= 0 && max <= atLeast) return [0, atLeast];
  return uPlot.rangeNum(min, max, 0.1, true);
}

/** Returns the ends of a logarithmic axis of values; of one without a positive value those of a decade. */
function logarithmicRange(min: number, max: number): uPlot.Range.MinMax {
  if (!(max > 0)) return [1, 10];
  const low = min > 0 ? min : max / 1000;
  return uPlot.rangeLog(low, low < max ? max : low * 10, 10, false);
}

/** Dashes and gaps in pixels: lines of one colour differ by them. The first is a whole line. */
export const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2]];

/** Returns the background of the sign of a line in lists: its colour, with stripes for a dashed line. */
export function swatchPaint(colour: number, dash: number | undefined, dark: boolean): string {
  const paint = lineColour(colour, dark);
  const [ink, gap = 0] = DASHES[(dash ?? 0) % DASHES.length] ?? [];
  return ink ? `repeating-linear-gradient(90deg, ${paint} 0 ${ink}px, transparent 0 ${ink + gap}px)` : paint;
}

export function plotOptions(settings: PlotSettings): uPlot.Options {
  const { lines, axis, log, logX, dark, height, width, formatValue, extent, compact } = settings;
  const colours = cssVariables(dark);
  const axisStyle = {
    stroke: colours["--muted"],
    grid: { stroke: colours["--border"], width: 1 },
    ticks: { stroke: colours["--border"], width: 1 },
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const anyPinned = lines.some(({ pinned }) => pinned);
  for (const line of lines) {
    const colour = lineColour(line.colour, dark);
    series.push({
      stroke: line.faint || (anyPinned && !line.pinned) ? `${colour}55` : colour,
      width: line.faint ? 1 : line.pinned ? 2.5 : 1.5,
      ...(line.dash ? { dash: DASHES[line.dash % DASHES.length] as number[] } : {}),
      points: { show: true, filter: isolatedPoints },
    });
    if (!line.low || !line.high) continue;
    bands.push({ series: [series.length, series.length + 1], fill: `${colour}2e` });
    for (let edge = 0; edge < 2; edge += 1) series.push({ stroke: "transparent", points: { show: false } });
  }
  // The width of "15:49:30" and a gap.
  const x: uPlot.Axis = { ...axisStyle, font: "11px system-ui", ...(axis === "time" || axis === "relative" ? { space: 64 } : {}) };
  if (compact) x.size = 28;
  if (axis === "relative") x.values = (_, splits) => splits.map((value) => (value === null ? "" : formatDuration(value)));
  if (axis === "time") x.values = (_, splits, __, ___, step) => splits.map((value) => formatAxisTick(value, step));
  const around = AROUND[axis];
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { size: 5 }, y: false },
    scales: {
      x: {
        time: axis === "time",
        ...(logX ? { distr: LOGARITHMIC_SCALE } : {}),
        range: ({ data: [points] }, min, max) => horizontalRange(points, [min, max], { zoom: extent().x, logX, around }),
      },
      y: {
        ...(log ? { distr: LOGARITHMIC_SCALE } : {}),
        range: (_, min, max) => {
          const { x: zoom, withoutOutliers, atLeast } = extent(); // uPlot's own range of x is the one before a zoom
          const [low, high] = (withoutOutliers && rangeWithoutOutliers(settings.shownLines(), zoom)) || [min, max];
          return log ? logarithmicRange(low, high) : valueRange(low, high, atLeast);
        },
      },
    },
    axes: [
      x,
      {
        ...axisStyle,
        font: "11px system-ui",
        size: compact ? 52 : 76,
        space: compact ? 20 : 30,
        ...(extent().steps ? { incrs: extent().steps as number[] } : {}),
        values: (_, splits) => splits.map((value) => (value === null ? "" : formatValue(value))),
      },
    ],
    series,
    bands,
  };
}
