// Lines over an axis, by uPlot. What it shows is also told in the table below it, which is its legend.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { duration, number, tick, time } from "../format";
import { say } from "../language";
import { lineColour, useDark, variables } from "../theme";
import { aligned, type Line } from "./lines";

const LOGARITHMIC = 3 as uPlot.Scale.Distr;

export type Axis = "step" | "time" | "relative";

interface Props {
  label: string;
  lines: Line[];
  axis: Axis;
  height?: number;
  log?: boolean;
  /** Charts of one name show the same place of the pointer. */
  together?: string;
  show?: (value: number) => string;
}

export function LineChart(props: Props): ReactNode {
  const { label, lines, axis, height = 200, log = false, together, show = number } = props;
  const dark = useDark();
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const data = useMemo(() => aligned(lines), [lines]);
  const chart = useRef<uPlot>(null);
  const shownLines = useRef(lines);
  shownLines.current = lines;
  const names = lines.map((line) => line.name + (line.faint ? "~" : "") + (line.low ? "±" : "")).join("\n");
  useEffect(() => {
    const place = box.current;
    if (!place) return;
    const begun = performance.now();
    const options = optionsOf({ lines, axis, log, dark, height, width: place.clientWidth, show });
    options.cursor = { ...options.cursor, ...(together ? { sync: { key: together } } : {}) };
    let first = true;
    const told = (): void => {
      if (first) performance.measure("howdah-chart", { start: begun, end: performance.now() });
      first = false;
    };
    options.hooks = {
      setCursor: [(plot) => setAt(plot.cursor.idx ?? null)],
      draw: [(plot) => drawOdd(plot, shownLines.current, dark), told],
    };
    const made = new uPlot(options, data, place);
    chart.current = made;
    const watching = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height }));
    watching.observe(place);
    return () => {
      watching.disconnect();
      made.destroy();
      chart.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- new data alone goes into the chart that there is
  }, [names, axis, log, dark, height, together]);
  useEffect(() => {
    if (chart.current && chart.current.data !== data) chart.current.setData(data);
  }, [data]);
  return (
    <figure className="chart" style={{ margin: 0 }}>
      <div
        ref={box}
        role="img"
        aria-label={`${label}: ${lines.filter((line) => !line.faint).length}`}
        style={{ minHeight: height }}
      />
      <Legend label={label} lines={lines} x={at === null ? null : (data[0][at] ?? null)} axis={axis} show={show} />
    </figure>
  );
}

interface LegendProps {
  label: string;
  lines: Line[];
  x: number | null;
  axis: Axis;
  show: (value: number) => string;
}

const MOST_NAMED = 60;

function Legend({ label, lines, x, axis, show }: LegendProps): ReactNode {
  const dark = useDark();
  const named = lines.filter((line) => !line.faint);
  const value = (line: Line): string => {
    const found = x === null ? line.y.length - 1 : nearest(line.x, x);
    const y = line.y[found];
    return typeof y === "number" ? show(y) : "–";
  };
  return (
    <div className="legend" tabIndex={named.length > 5 ? 0 : undefined}>
      <table aria-label={label}>
        <tbody>
          <tr>
            <td className="muted">{x === null ? say("Last value") : onAxis(axis, x)}</td>
            <td />
          </tr>
          {named.slice(0, MOST_NAMED).map((line) => (
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
      {named.length > MOST_NAMED && (
        <span className="muted">{say("and {count} more", { count: named.length - MOST_NAMED })}</span>
      )}
    </div>
  );
}

function nearest(xs: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle;
    else high = middle;
  }
  return Math.abs((xs[high] ?? 0) - x) < Math.abs((xs[low] ?? 0) - x) ? high : low;
}

function onAxis(axis: Axis, x: number): string {
  if (axis === "time") return time(x);
  return axis === "relative" ? duration(x) : say("step {step}", { step: x });
}

interface Options {
  lines: Line[];
  axis: Axis;
  log: boolean;
  dark: boolean;
  height: number;
  width: number;
  show: (value: number) => string;
}

const MARK = 4;

/** A cross for each NaN at the lower edge, a wedge for each infinity at the edge beyond which it lies. */
function drawOdd(plot: uPlot, lines: Line[], dark: boolean): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const size = MARK * window.devicePixelRatio;
  for (const line of lines) {
    if (line.faint) continue;
    ctx.strokeStyle = lineColour(line.colour, dark);
    ctx.lineWidth = 1.5 * window.devicePixelRatio;
    for (const { x, name } of line.odd ?? []) {
      const across = plot.valToPos(x, "x", true);
      if (across < left || across > left + width) continue;
      const up = name === "Infinity" ? 1 : -1;
      const edge = name === "Infinity" ? top + size : top + height - size;
      ctx.beginPath();
      ctx.moveTo(across - size, edge + (name === "NaN" ? -size : 0));
      if (name === "NaN") {
        ctx.lineTo(across + size, edge + size);
        ctx.moveTo(across - size, edge + size);
        ctx.lineTo(across + size, edge - size);
      } else {
        ctx.lineTo(across + size, edge);
        ctx.lineTo(across, edge - up * size);
        ctx.closePath();
      }
      ctx.stroke();
    }
  }
}

/** Points with a gap on both sides: no line leads to them. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] as (number | null | undefined)[];
  const [first, last] = [plot.series[0]?.idxs?.[0] ?? 0, plot.series[0]?.idxs?.[1] ?? values.length - 1];
  const found: number[] = [];
  let before: number | null = null;
  for (let at = first; at <= last; at += 1) {
    const value = values[at];
    if (value === undefined) continue;
    if (value !== null && before === null && next(values, at, last) === null) found.push(at);
    before = value;
  }
  return found;
}

function next(values: (number | null | undefined)[], at: number, last: number): number | null {
  for (let after = at + 1; after <= last; after += 1) if (values[after] !== undefined) return values[after] ?? null;
  return null;
}

function optionsOf({ lines, axis, log, dark, height, width, show }: Options): uPlot.Options {
  const colours = variables(dark);
  const pen = {
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
      points: { show: true, filter: alone },
    });
    if (!line.low || !line.high) continue;
    bands.push({ series: [series.length, series.length + 1], fill: `${colour}2e` });
    for (let edge = 0; edge < 2; edge += 1)
      series.push({ stroke: "transparent", points: { show: false } });
  }
  // As wide as "15:49:30" and a gap.
  const x: uPlot.Axis = { ...pen, font: "11px system-ui", ...(axis === "step" ? {} : { space: 64 }) };
  if (axis === "relative") x.values = (_, splits) => splits.map((value) => duration(value));
  if (axis === "time") x.values = (_, splits, __, ___, step) => splits.map((value) => tick(value, step));
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { size: 5 }, y: false },
    scales: { x: { time: axis === "time" }, y: log ? { distr: LOGARITHMIC } : {} },
    axes: [
      x,
      {
        ...pen,
        font: "11px system-ui",
        size: 76,
        values: (_, splits) => splits.map((value) => (value === null ? "" : show(value))),
      },
    ],
    series,
    bands,
  };
}
