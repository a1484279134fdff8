// ECharts options for histograms: the bars of one step, and a heat map of all steps.

import type { Histograms } from "../api";
import { formatNumber } from "../format";
import { t } from "../language";
import { lineColour, cssVariables } from "../theme";

export type HistogramStep = Histograms["steps"][number];

interface RenderItemApi {
  value: (index: number) => number;
  coord: (point: [number, number]) => [number, number];
  style: () => object;
}

const BINS = 60;

/** The left edge, the right edge and the count. */
type Bucket = [number, number, number];

/** Returns a finite number, or null for the name of a number that JSON does not have (`NaN`, `Infinity`). */
export function numberOrNull(value: number | string | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** Returns the buckets with finite edges; the outermost edges may be infinite. */
function finiteBuckets({ buckets }: HistogramStep): Bucket[] {
  return buckets.filter((bucket): bucket is Bucket => bucket.every((value) => typeof value === "number"));
}

/** Returns a table with a row for each bucket of these steps, its column names first. */
export function bucketRows(steps: HistogramStep[]): (string | number)[][] {
  const rows = steps.flatMap(({ step, buckets }) => buckets.map((bucket) => [step, ...bucket]));
  return [["step", "left", "right", "count"], ...rows];
}

/** Converts buckets, which are wider the further they are from zero, to bins of one width from `low` to `high`. */
function toEqualBins(buckets: Bucket[], low: number, high: number): Bucket[] {
  const width = (high - low) / BINS || 1;
  const counts = new Array<number>(BINS).fill(0);
  for (const [left, right, count] of buckets) {
    const first = Math.max(0, Math.min(BINS - 1, Math.floor((left - low) / width)));
    const last = Math.max(first, Math.min(BINS - 1, Math.ceil((right - low) / width) - 1));
    for (let bin = first; bin <= last; bin += 1) {
      const overlap = Math.min(right, low + (bin + 1) * width) - Math.max(left, low + bin * width);
      const share = first === last ? 1 : Math.max(0, overlap) / (right - left);
      counts[bin] = (counts[bin] ?? 0) + share * count;
    }
  }
  return counts.map((count, bin) => [low + bin * width, low + (bin + 1) * width, count]);
}

/** Returns the least and the greatest value of these steps. */
function valueRange(steps: HistogramStep[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const step of steps) {
    for (const [left, right, count] of finiteBuckets(step)) {
      if (count <= 0) continue;
      low = Math.min(low, left);
      high = Math.max(high, right);
    }
  }
  return low < high ? [low, high] : [0, 1];
}

/** Builds a heat map: steps run to the right, values up; a deeper colour means a higher count. */
export function stepsHeatmapOption(steps: HistogramStep[], dark: boolean): object {
  const [low, high] = valueRange(steps);
  const steppedBins = steps.map((each) => ({ step: each.step, buckets: toEqualBins(finiteBuckets(each), low, high) }));
  const maxCount = Math.max(1e-12, ...steppedBins.flatMap(({ buckets }) => buckets.map(([, , count]) => count)));
  const colour = lineColour(0, dark);
  const data = steppedBins.flatMap(({ step, buckets }, index) =>
    buckets
      .filter(([, , count]) => count > 0)
      .map(([left, right, count]) => ({
        value: [index, left, right, count, step],
        itemStyle: { color: colour, opacity: 0.06 + 0.94 * Math.sqrt(count / maxCount) },
      })),
  );
  return {
    ...axesOption(dark),
    xAxis: { ...axesOption(dark).xAxis, type: "category", data: steps.map(({ step }) => `${step}`) },
    tooltip: { formatter: (shown: { data: { value: number[] } }) => formatTooltip(shown.data.value) },
    series: [{ type: "custom", renderItem: heatmapCell(steps.length), encode: { x: 0, y: [1, 2] }, data, clip: true }],
  };
}

function formatTooltip([, left = 0, right = 0, count = 0, step = 0]: number[]): string {
  return `${t("step {step}", { step })}\n${formatNumber(left)} … ${formatNumber(right)}: ${formatNumber(count)}`;
}

function heatmapCell(columns: number): (params: { coordSys: { width: number } }, api: RenderItemApi) => object {
  return (params, api) => {
    const [x, top] = api.coord([api.value(0), api.value(2)]);
    const [, bottom] = api.coord([api.value(0), api.value(1)]);
    const width = Math.max(1, params.coordSys.width / Math.max(1, columns) - 1);
    return {
      type: "rect",
      shape: { x: x - width / 2, y: top, width, height: Math.max(1, bottom - top) },
      style: api.style(),
    };
  };
}

/** Builds a bar chart: values run to the right, counts up. */
export function histogramOption(step: HistogramStep | undefined, dark: boolean): object {
  const buckets = step ? toEqualBins(finiteBuckets(step), ...valueRange([step])) : [];
  const bar = (_: unknown, api: RenderItemApi): object => {
    const [left, top] = api.coord([api.value(0), api.value(2)]);
    const [right, bottom] = api.coord([api.value(1), 0]);
    return {
      type: "rect",
      shape: { x: left, y: top, width: Math.max(1, right - left - 1), height: bottom - top },
      style: api.style(),
    };
  };
  return {
    ...axesOption(dark),
    tooltip: {
      formatter: (shown: { data: number[] }) =>
        `${formatNumber(shown.data[0] ?? 0)} … ${formatNumber(shown.data[1] ?? 0)}: ${formatNumber(shown.data[2] ?? 0)}`,
    },
    series: [
      {
        type: "custom",
        renderItem: bar,
        encode: { x: [0, 1], y: 2 },
        data: buckets,
        itemStyle: { color: lineColour(0, dark) },
      },
    ],
  };
}

function axesOption(dark: boolean): { grid: object; xAxis: object; yAxis: object } {
  const colours = cssVariables(dark);
  const axis = {
    type: "value",
    scale: true,
    axisLabel: { color: colours["--muted"] },
    splitLine: { lineStyle: { color: colours["--border"] } },
  };
  return { grid: { left: 60, right: 14, top: 14, bottom: 30 }, xAxis: axis, yAxis: axis };
}
