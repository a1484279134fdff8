// A line chart with uPlot. The legend below it is a table of the same values.

import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber } from "../format";
import { useDarkMode } from "../theme";
import { ChartLegend, ChartTooltip, type PointerPlace } from "./ChartLegend";
import { type ChartLine, dropBelowOrAtZero, toPlotData } from "./chartLines";
import { type AxisKind, type ChartExtent, drawNonFiniteMarks, plotOptions } from "./plotOptions";

export interface LineChartProps {
  label: string;
  lines: ChartLine[];
  axis: AxisKind;
  height?: number;
  log?: boolean;
  /** Draws the horizontal axis logarithmically. */
  logX?: boolean;
  /** Charts with the same key share the position of the pointer. */
  syncKey?: string;
  formatValue?: (value: number) => string;
  /** What the axes show where the values do not say more. */
  extent?: ChartExtent;
  /** Called with the part of the axis that the reader selects by dragging. Without it the chart zooms by itself. */
  onSelect?: (from: number, to: number) => void;
  /** Called when the reader wants the whole axis back, by a double click. */
  onReset?: () => void;
  /** Called with the id of a line that the reader pins or unpins. */
  onPin?: (id: string) => void;
  /** Leaves out the legend, and room at the axes. */
  compact?: boolean;
  /** Shows the whole legend. */
  tallLegend?: boolean;
  /** Receives the plot, for files made of it. */
  plot?: RefObject<uPlot | null>;
}

export function LineChart(props: LineChartProps): ReactNode {
  const { label, axis, height = 200, log = false, logX = false, syncKey, compact = false } = props;
  const { formatValue = formatNumber, extent, onPin, tallLegend = false } = props;
  const lines = useMemo(() => (logX ? props.lines.map(dropBelowOrAtZero) : props.lines), [props.lines, logX]);
  const current = useRef({ ...props, lines });
  current.current = { ...props, lines };
  const dark = useDarkMode();
  const box = useRef<HTMLDivElement>(null);
  const [cursorIndex, setCursorIndex] = useState<number | null>(null);
  const [pointer, setPointer] = useState<PointerPlace | null>(null);
  const data = useMemo(() => toPlotData(lines), [lines]);
  const chart = useRef<uPlot>(null);
  const styles = lines.map(lineStyle).join("\n");
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const startedAt = performance.now();
    const width = element.clientWidth;
    const options = plotOptions({
      ...{ lines, axis, log, logX, dark, height, width, formatValue, compact },
      extent: () => current.current.extent ?? {},
      shownLines: () => current.current.lines,
    });
    options.cursor = { ...options.cursor, ...(syncKey ? { sync: { key: syncKey } } : {}) };
    if (current.current.onSelect) {
      options.cursor.drag = { x: true, y: false, setScale: false };
      // The selection is told by the chart that it is made in alone.
      if (syncKey) options.cursor.sync = { key: syncKey, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } };
    }
    let first = true;
    const measureFirstDraw = (): void => {
      if (first) performance.measure("howdah-chart", { start: startedAt, end: performance.now() });
      first = false;
    };
    options.hooks = {
      setCursor: [
        (plot) => {
          setCursorIndex(plot.cursor.idx ?? null);
          if (!compact) setPointer(pointerPlace(plot));
        },
      ],
      setSelect: [(plot) => reportSelection(plot, current.current.onSelect)],
      draw: [(plot) => drawNonFiniteMarks(plot, current.current.lines, dark), measureFirstDraw],
    };
    const created = new uPlot(options, data, element);
    created.over.addEventListener("dblclick", () => current.current.onReset?.());
    chart.current = created;
    if (current.current.plot) current.current.plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      chart.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- new data alone updates the existing plot
  }, [styles, axis, log, logX, dark, height, syncKey, compact]);
  const [from, to] = extent?.x ?? [];
  useEffect(() => {
    if (chart.current) chart.current.setData(data);
  }, [data, from, to, extent?.withoutOutliers]);
  return (
    <figure className="chart" style={{ margin: 0 }}>
      <div
        ref={box}
        role="img"
        aria-label={`${label}: ${lines.filter((line) => !line.faint).length}`}
        style={{ minHeight: height }}
      />
      {pointer && <ChartTooltip lines={lines} pointer={pointer} axis={axis} formatValue={formatValue} />}
      {!compact && (
        <ChartLegend
          label={label}
          lines={lines}
          x={cursorIndex === null ? null : (data[0][cursorIndex] ?? null)}
          axis={axis}
          formatValue={formatValue}
          onPin={onPin}
          tall={tallLegend}
        />
      )}
    </figure>
  );
}

/** Returns all that the plot must be made anew for when it changes. */
function lineStyle({ name, colour, dash, faint, low, pinned }: ChartLine): string {
  return JSON.stringify([name, colour, dash, faint, Boolean(low), pinned]);
}

/** Returns where the pointer is; null if it is not over this chart, but over another one with the same cursor. */
function pointerPlace(plot: uPlot): PointerPlace | null {
  const { left = -1, top = -1 } = plot.cursor;
  if (left < 0 || !plot.over.matches(":hover")) return null;
  const { offsetLeft, offsetTop, clientWidth } = plot.over;
  return {
    x: plot.posToVal(left, "x"),
    y: plot.posToVal(top, "y"),
    left: left + offsetLeft,
    top: top + offsetTop,
    onRight: left > clientWidth / 2,
  };
}

const NOTHING_SELECTED = { left: 0, top: 0, width: 0, height: 0 };

function reportSelection(plot: uPlot, onSelect: LineChartProps["onSelect"]): void {
  const { left, width } = plot.select;
  if (!onSelect || width <= 0) return;
  plot.setSelect(NOTHING_SELECTED, false);
  onSelect(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
}
