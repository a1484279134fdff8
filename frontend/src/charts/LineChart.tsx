// A line chart with uPlot. The legend below it is a table of the same values.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatDuration, formatNumber, formatAxisTick, formatTime } from "../format";
import { t } from "../language";
import { lineColour, useDarkMode, cssVariables } from "../theme";
import { toPlotData, type ChartLine } from "./chartLines";

const LOGARITHMIC_SCALE = 3 as uPlot.Scale.Distr;

export type AxisKind = "step" | "time" | "relative";

interface Props {
  label: string;
  lines: ChartLine[];
  axis: AxisKind;
  height?: number;
  log?: boolean;
  /** Charts with the same key share the position of the pointer. */
  syncKey?: string;
  formatValue?: (value: number) => string;
  /** What the axes show where the values do not say more. */
  extent?: ChartExtent;
  /** Called with the part of the axis that the reader selects by dragging. Without it the chart zooms by itself. */
  onSelect?: (from: number, to: number) => void;
  /** Leaves out the legend, and room at the axes. */
  compact?: boolean;
}

export interface ChartExtent {
  /** The first and the last value of the horizontal axis. */
  x?: [from: number, to: number];
  /** Small values are drawn on an axis from 0 to this value. */
  atLeast?: number;
  /** The distances between ticks of values. */
  steps?: number[];
}

export function LineChart(props: Props): ReactNode {
  const { label, lines, axis, height = 200, log = false, syncKey, formatValue = formatNumber, compact = false } = props;
  const current = useRef(props);
  current.current = props;
  const dark = useDarkMode();
  const box = useRef<HTMLDivElement>(null);
  const [cursorIndex, setCursorIndex] = useState<number | null>(null);
  const data = useMemo(() => toPlotData(lines), [lines]);
  const chart = useRef<uPlot>(null);
  const names = lines.map((line) => line.name + (line.faint ? "~" : "") + (line.low ? "±" : "")).join("\n");
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const startedAt = performance.now();
    const extent = (): ChartExtent => current.current.extent ?? {};
    const width = element.clientWidth;
    const options = plotOptions({ lines, axis, log, dark, height, width, formatValue, extent, compact });
    options.cursor = { ...options.cursor, ...(syncKey ? { sync: { key: syncKey } } : {}) };
    if (current.current.onSelect) options.cursor.drag = { x: true, y: false, setScale: false };
    let first = true;
    const measureFirstDraw = (): void => {
      if (first) performance.measure("howdah-chart", { start: startedAt, end: performance.now() });
      first = false;
    };
    options.hooks = {
      setCursor: [(plot) => setCursorIndex(plot.cursor.idx ?? null)],
      setSelect: [(plot) => reportSelection(plot, current.current.onSelect)],
      draw: [(plot) => drawNonFiniteMarks(plot, current.current.lines, dark), measureFirstDraw],
    };
    const created = new uPlot(options, data, element);
    chart.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      chart.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- new data alone updates the existing plot
  }, [names, axis, log, dark, height, syncKey, compact]);
  const [from, to] = props.extent?.x ?? [];
  useEffect(() => {
    if (chart.current) chart.current.setData(data);
  }, [data, from, to]);
  return (
    <figure className="chart" style={{ margin: 0 }}>
      <div
        ref={box}
        role="img"
        aria-label={`${label}: ${lines.filter((line) => !line.faint).length}`}
        style={{ minHeight: height }}
      />
      {!compact && (
        <Legend
          label={label}
          lines={lines}
          x={cursorIndex === null ? null : (data[0][cursorIndex] ?? null)}
          axis={axis}
          formatValue={formatValue}
        />
      )}
    </figure>
  );
}

const NOTHING_SELECTED = { left: 0, top: 0, width: 0, height: 0 };

function reportSelection(plot: uPlot, onSelect: Props["onSelect"]): void {
  const { left, width } = plot.select;
  if (!onSelect || width <= 0) return;
  plot.setSelect(NOTHING_SELECTED, false);
  onSelect(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
}

interface LegendProps {
  label: string;
  lines: ChartLine[];
  x: number | null;
  axis: AxisKind;
  formatValue: (value: number) => string;
}

const MAX_LEGEND_ROWS = 60;

function Legend({ label, lines, x, axis, formatValue }: LegendProps): ReactNode {
  const dark = useDarkMode();
  const named = lines.filter((line) => !line.faint);
  const value = (line: ChartLine): string => {
    const index = x === null ? line.y.length - 1 : nearestIndex(line.x, x);
    const y = line.y[index];
    return typeof y === "number" ? formatValue(y) : "–";
  };
  return (
    <div className="legend" tabIndex={named.length > 5 ? 0 : undefined}>
      <table aria-label={label}>
        <tbody>
          <tr>
            <td className="muted">{x === null ? t("Last value") : formatAxisValue(axis, x)}</td>
            <td />
          </tr>
          {named.slice(0, MAX_LEGEND_ROWS).map((line) => (
            <tr key={line.name}>
              <th scope="row">
                <span className="swatch" style={{ background: lineColour(line.colour, dark) }} />
                {line.name}
                {line.note && <span className="muted"> {line.note}</span>}
              </th>
              <td className="value">{value(line)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {named.length > MAX_LEGEND_ROWS && (
        <span className="muted">{t("and {count} more", { count: named.length - MAX_LEGEND_ROWS })}</span>
      )}
    </div>
  );
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

function formatAxisValue(axis: AxisKind, x: number): string {
  if (axis === "time") return formatTime(x);
  return axis === "relative" ? formatDuration(x) : t("step {step}", { step: x });
}

interface PlotSettings {
  lines: ChartLine[];
  axis: AxisKind;
  log: boolean;
  dark: boolean;
  height: number;
  width: number;
  formatValue: (value: number) => string;
  extent: () => ChartExtent;
  compact: boolean;
}

const MARK_SIZE = 4;

/** Draws a cross at the lower edge for each NaN, and a wedge at the upper or lower edge for each infinity. */
function drawNonFiniteMarks(plot: uPlot, lines: ChartLine[], dark: boolean): void {
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

/** Returns the ends of the axis of values. */
function valueRange(min: number, max: number, atLeast = 0): uPlot.Range.MinMax {
  if (min === 0 && max === 0) return [0, atLeast || 1];
  if (min >= 0 && max <= atLeast) return [0, atLeast];
  return uPlot.rangeNum(min, max, 0.1, true);
}

function plotOptions(settings: PlotSettings): uPlot.Options {
  const { lines, axis, log, dark, height, width, formatValue, extent, compact } = settings;
  const colours = cssVariables(dark);
  const axisStyle = {
    stroke: colours["--muted"],
    grid: { stroke: colours["--border"], width: 1 },
    ticks: { stroke: colours["--border"], width: 1 },
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const line of lines) {
    const colour = lineColour(line.colour, dark);
    series.push({
      stroke: line.faint ? `${colour}55` : colour,
      width: line.faint ? 1 : 1.5,
      points: { show: true, filter: isolatedPoints },
    });
    if (!line.low || !line.high) continue;
    bands.push({ series: [series.length, series.length + 1], fill: `${colour}2e` });
    for (let edge = 0; edge < 2; edge += 1) series.push({ stroke: "transparent", points: { show: false } });
  }
  // The width of "15:49:30" and a gap.
  const x: uPlot.Axis = { ...axisStyle, font: "11px system-ui", ...(axis === "step" ? {} : { space: 64 }) };
  if (compact) x.size = 28;
  if (axis === "relative") x.values = (_, splits) => splits.map((value) => formatDuration(value));
  if (axis === "time") x.values = (_, splits, __, ___, step) => splits.map((value) => formatAxisTick(value, step));
  const around = axis === "step" ? 1 : 30; // what is shown beside a single point: steps, or seconds
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { size: 5 }, y: false },
    scales: {
      x: {
        time: axis === "time",
        range: ({ data: [points] }, min, max) => {
          const only = points.length === 1 ? points[0] : undefined;
          return extent().x ?? (only === undefined ? [min, max] : [only - around, only + around]);
        },
      },
      y: log
        ? { distr: LOGARITHMIC_SCALE }
        : { range: (_, min, max) => valueRange(min, max, extent().atLeast) },
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
