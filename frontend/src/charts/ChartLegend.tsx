// The table of lines below a chart, and the values beside the pointer. Names are text, never HTML.

import type { ReactNode } from "react";
import { formatDuration, formatNumber, formatTime } from "../format";
import { t } from "../language";
import { useDarkMode } from "../theme";
import type { ChartLine } from "./chartLines";
import { nearestLines, valueAt } from "./lineValues";
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
            <td className="muted">{x !== null ? formatAxisValue(axis, x) : axis === "recall" ? t("At the greatest recall") : t("Last value")}</td>
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

export function formatAxisValue(axis: AxisKind, x: number): string {
  if (axis === "time") return formatTime(x);
  if (axis === "recall") return t("recall {value}", { value: formatNumber(x, 3) });
  return axis === "relative" ? formatDuration(x) : t("step {step}", { step: x });
}
