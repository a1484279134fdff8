// The table of lines below a chart, and the values beside the pointer. Names are text, never HTML.

import type { ReactNode } from "react";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { useDarkMode } from "../theme";
import type { ChartLine } from "./chartLines";
import { type AxisKind, swatchPaint } from "./plotOptions";

interface LegendProps {
  label: string;
  lines: ChartLine[];
  /** Where the pointer is on the horizontal axis. */
  x: number | null;
  axis: AxisKind;
  formatValue: (value: number) => string;
  onPin?: ((id: string) => void) | undefined;
  /** Shows the whole table. */
  tall?: boolean;
}

const MAX_LEGEND_ROWS = 60;

export function ChartLegend({ label, lines, x, axis, formatValue, onPin, tall = false }: LegendProps): ReactNode {
  const named = pinnedFirst(lines.filter((line) => !line.faint));
  return (
    <div className={tall ? "legend tall" : "legend"} tabIndex={named.length > 5 ? 0 : undefined}>
      <table aria-label={label}>
        <tbody>
          <tr>
            <td className="muted">{x === null ? t("Last value") : formatAxisValue(axis, x)}</td>
            <td />
          </tr>
          {named.slice(0, MAX_LEGEND_ROWS).map((line) => (
            <tr key={line.id ?? line.name}>
              <th scope="row">
                <LineName line={line} onPin={onPin} />
                {line.note && <span className="muted"> {line.note}</span>}
              </th>
              <td className="value">{valueAt(line, x, formatValue)}</td>
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

function pinnedFirst(lines: ChartLine[]): ChartLine[] {
  return [...lines.filter(({ pinned }) => pinned), ...lines.filter(({ pinned }) => !pinned)];
}

function LineName({ line, onPin }: { line: ChartLine; onPin: LegendProps["onPin"] }): ReactNode {
  const { id, name, pinned = false } = line;
  const swatch = <Swatch line={line} />;
  if (!onPin || id === undefined) {
    return (
      <>
        {swatch}
        {name}
      </>
    );
  }
  return (
    <button
      type="button"
      className={pinned ? "line-name pinned" : "line-name"}
      aria-pressed={pinned}
      title={pinned ? t("Unpin this line") : t("Pin this line: the others become pale")}
      onClick={() => onPin(id)}
    >
      {swatch}
      {name}
    </button>
  );
}

/** A square in the line's colour; with stripes for a dashed line. */
function Swatch({ line: { colour, dash = 0 } }: { line: ChartLine }): ReactNode {
  const dark = useDarkMode();
  return <span className={dash ? "swatch dashed" : "swatch"} style={{ background: swatchPaint(colour, dash, dark) }} />;
}

interface TooltipProps {
  lines: ChartLine[];
  pointer: PointerPlace;
  axis: AxisKind;
  formatValue: (value: number) => string;
}

export interface PointerPlace {
  /** The place of the pointer on both axes. */
  x: number;
  y: number;
  /** The same in pixels from the left and the top of the chart. */
  left: number;
  top: number;
  /** Whether the pointer is in the right half. */
  onRight: boolean;
}

const MAX_TOOLTIP_ROWS = 8;

/** Shows the values of the lines that are nearest to the pointer, the greatest first. */
export function ChartTooltip({ lines, pointer, axis, formatValue }: TooltipProps): ReactNode {
  const rows = nearestLines(lines, pointer);
  if (!rows.length) return null;
  const nearest = rows[0]?.line;
  const shown = rows.slice(0, MAX_TOOLTIP_ROWS).sort((a, b) => (b.y ?? 0) - (a.y ?? 0));
  const side = pointer.onRight ? { transform: "translate(calc(-100% - 12px), 8px)" } : { transform: "translate(12px, 8px)" };
  return (
    <div className="chart-tooltip" style={{ left: pointer.left, top: pointer.top, ...side }} aria-hidden>
      <div className="muted">{formatAxisValue(axis, rows[0]?.x ?? pointer.x)}</div>
      {shown.map(({ line, text }) => (
        <div key={line.id ?? line.name} className={line === nearest ? "nearest" : ""}>
          <Swatch line={line} />
          <span className="name">{line.name}</span>
          <span className="value">{text(formatValue)}</span>
        </div>
      ))}
      {rows.length > shown.length && (
        <div className="muted">{t("and {count} more", { count: rows.length - shown.length })}</div>
      )}
    </div>
  );
}

interface TooltipRow {
  line: ChartLine;
  x: number;
  y: number | null;
  text: (formatValue: (value: number) => string) => string;
}

/** Returns the lines with a value at the pointer, the nearest first, pinned ones before all others. */
function nearestLines(lines: ChartLine[], { x, y }: PointerPlace): TooltipRow[] {
  const rows = lines.flatMap((line): TooltipRow[] => {
    if (line.faint || !line.x.length) return [];
    const index = nearestIndex(line.x, x);
    const at = line.x[index] as number;
    const value = line.y[index] ?? null;
    const text = (format: (value: number) => string): string => valueWithRange(line, index, format);
    return [{ line, x: at, y: value, text }];
  });
  const distance = (row: TooltipRow): number => (row.y === null ? Number.POSITIVE_INFINITY : Math.abs(row.y - y));
  const first = ({ line }: TooltipRow): number => (line.pinned ? 0 : 1);
  return rows.sort((a, b) => first(a) - first(b) || distance(a) - distance(b) || 0);
}

function valueWithRange(line: ChartLine, index: number, format: (value: number) => string): string {
  const value = line.y[index];
  if (typeof value !== "number") return nonFiniteName(line, line.x[index] as number) ?? "–";
  const [low, high] = [line.low?.[index], line.high?.[index]];
  if (typeof low !== "number" || typeof high !== "number" || low === high) return format(value);
  return `${format(value)} (${format(low)} … ${format(high)})`;
}

function nonFiniteName(line: ChartLine, x: number): string | undefined {
  return line.nonFinite?.find((mark) => mark.x === x)?.name;
}

function valueAt(line: ChartLine, x: number | null, formatValue: (value: number) => string): string {
  const index = x === null ? line.y.length - 1 : nearestIndex(line.x, x);
  const y = line.y[index];
  return typeof y === "number" ? formatValue(y) : (nonFiniteName(line, line.x[index] as number) ?? "–");
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

export function formatAxisValue(axis: AxisKind, x: number): string {
  if (axis === "time") return formatTime(x);
  return axis === "relative" ? formatDuration(x) : t("step {step}", { step: x });
}
