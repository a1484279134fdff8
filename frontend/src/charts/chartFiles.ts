// Files of a chart as it is shown: its values as CSV, its picture as SVG or PNG. All are made in the browser.

import type uPlot from "uplot";
import { formatNumber } from "../format";
import { t } from "../language";
import { cssVariables, lineColour } from "../theme";
import { formatAxisValue } from "./ChartLegend";
import type { ChartLine } from "./chartLines";
import type { LineChartProps } from "./LineChart";
import { type AxisKind, DASHES } from "./plotOptions";

type Row = readonly (string | number)[];

/** Makes a table with a row for each drawn point. Times are in Unix seconds. */
export function toCsv(lines: ChartLine[], axis: AxisKind): string {
  return writeCsv(toRows(lines, axis));
}

function toRows(lines: ChartLine[], axis: AxisKind): Row[] {
  const withThresholds = lines.some(({ thresholds }) => thresholds);
  const rows = lines.flatMap((line) => {
    const odd = new Map((line.nonFinite ?? []).map(({ x, name }) => [x, name]));
    const name = line.smoothed ? `${line.name} (${t("smoothed")})` : line.name;
    const points = Array.from(line.x, (x, index) => [x, index] as const);
    const ofPoints = points.map(([x, index]) => {
      const value = line.y[index] ?? odd.get(x) ?? "";
      odd.delete(x);
      const threshold = withThresholds ? [line.thresholds?.[index] ?? ""] : [];
      return [x, [name, x, value, line.low?.[index] ?? value, line.high?.[index] ?? value, ...threshold]] as const;
    });
    const between = [...odd].map(([x, value]) => [x, [name, x, value, value, value]] as const);
    const all = between.length ? [...ofPoints, ...between].sort(([a], [b]) => a - b) : ofPoints;
    return all.map(([, cells]) => cells);
  });
  return [["line", axis, "value", "minimum", "maximum", ...(withThresholds ? ["threshold"] : [])], ...rows];
}

function writeCsv(rows: Row[]): string {
  return rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/** A spreadsheet takes a text that begins with one of these characters for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function csvCell(value: string | number): string {
  if (typeof value === "number") return `${value}`;
  const text = FORMULA.test(value) && !/^-Infinity$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveCsv({ label, lines, axis }: LineChartProps): void {
  saveRows(label, toRows(lines, axis));
}

/** Saves a table as CSV. */
export function saveRows(label: string, rows: Row[]): void {
  saveFile(new Blob([writeCsv(rows)], { type: "text/csv" }), `${fileName(label)}.csv`);
}

const PNG_SCALE = 2;

export async function savePicture(kind: "png" | "svg", chart: LineChartProps, plot: uPlot, dark: boolean): Promise<void> {
  const { svg, width, height } = toSvg(chart, plot, dark);
  const picture = new Blob([svg], { type: "image/svg+xml" });
  if (kind === "svg") return saveFile(picture, `${fileName(chart.label)}.svg`);
  const address = URL.createObjectURL(picture);
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * PNG_SCALE, height * PNG_SCALE];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) saveFile(blob, `${fileName(chart.label)}.png`);
  } finally {
    URL.revokeObjectURL(address);
  }
}

function fileName(label: string): string {
  return label.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "").slice(0, 80) || "chart";
}

function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

interface Picture {
  svg: string;
  width: number;
  height: number;
}

const [TOP, ROW, BOTTOM] = [30, 16, 12];
/** The parts of uPlot's axes that hold their ticks, which its types leave out. */
type AxisTicks = { _splits?: number[] | null; _values?: (string | number | null)[] | null };

function toSvg(chart: LineChartProps, plot: uPlot, dark: boolean): Picture {
  const colours = cssVariables(dark);
  const ratio = window.devicePixelRatio;
  const area = { left: plot.bbox.left / ratio, width: plot.bbox.width / ratio, height: plot.bbox.height / ratio };
  const named = chart.lines.filter(({ faint }) => !faint);
  const width = plot.width;
  const bottom = TOP + area.height;
  const height = bottom + 30 + ROW * named.length + BOTTOM;
  const axisValue = (value: number): number => Math.round(100 * (area.left + plot.valToPos(value, "x"))) / 100;
  const valueOf = (value: number): number => Math.round(100 * (TOP + plot.valToPos(value, "y"))) / 100;
  const format = chart.formatValue ?? formatNumber;
  const xTicks = ticks(plot.axes[0] as AxisTicks).map(({ at, label }) => {
    const x = axisValue(at);
    return `<path class="g" d="M${x} ${TOP}V${bottom}"/><text x="${x}" y="${bottom + 16}" text-anchor="middle">${escapeXml(label)}</text>`;
  });
  const yTicks = ticks(plot.axes[1] as AxisTicks).map(({ at, label }) => {
    const y = valueOf(at);
    return `<path class="g" d="M${area.left} ${y}h${area.width}"/><text x="${area.left - 6}" y="${y + 4}" text-anchor="end">${escapeXml(label)}</text>`;
  });
  const anyPinned = chart.lines.some(({ pinned }) => pinned);
  const drawn = chart.lines.flatMap((line) => drawLine(line, axisValue, valueOf, dark, anyPinned, { top: TOP, bottom }));
  const legend = named.map((line, row) => {
    const y = bottom + 30 + ROW * (row + 1);
    const last = line.y.at(-1);
    const value = typeof last === "number" ? `: ${format(last)}` : "";
    return `<path d="M${area.left} ${y - 4}h16" ${stroke(line, dark)}/><text class="n" x="${area.left + 22}" y="${y}">${escapeXml(`${line.name}${value} ${line.note ?? ""}`.trim())}</text>`;
  });
  const [from, to] = [plot.scales.x?.min ?? 0, plot.scales.x?.max ?? 0].map((x) => formatAxisValue(chart.axis, x));
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<title>${escapeXml(`${chart.label}, ${from} – ${to}`)}</title>`,
    `<style>text{fill:${colours["--muted"]}}.n,.t{fill:${colours["--text"]}}.g{stroke:${colours["--border"]};fill:none}</style>`,
    `<rect width="100%" height="100%" fill="${colours["--surface"]}"/>`,
    `<text class="t" x="12" y="18" font-size="14" font-weight="600">${escapeXml(chart.label)}</text>`,
    ...xTicks,
    ...yTicks,
    `<clipPath id="area"><rect x="${area.left}" y="${TOP}" width="${area.width}" height="${area.height}"/></clipPath>`,
    `<g clip-path="url(#area)">`,
    ...drawn,
    `</g>`,
    ...legend,
    `</svg>`,
  ].join("\n");
  return { svg, width, height };
}

function ticks({ _splits, _values }: AxisTicks): { at: number; label: string }[] {
  return (_splits ?? []).flatMap((at, index) => {
    const label = _values?.[index];
    return label === null || label === undefined || label === "" ? [] : [{ at, label: `${label}` }];
  });
}

/** Returns the range of a line, the line, and marks for the values that are not finite. */
function drawLine(
  line: ChartLine,
  xOf: (value: number) => number,
  yOf: (value: number) => number,
  dark: boolean,
  anyPinned: boolean,
  edges: { top: number; bottom: number },
): string[] {
  const drawn: string[] = [];
  const pale = line.faint || (anyPinned && !line.pinned) ? ' opacity="0.35"' : "";
  for (const part of partsBetweenGaps(line.y)) {
    const place = (values: (number | null)[]) => (index: number) => `${xOf(line.x[index] as number)} ${yOf(values[index] as number)}`;
    if (line.low && line.high) {
      const edge = [...part.map(place(line.high)), ...[...part].reverse().map(place(line.low))];
      drawn.push(`<path d="M${edge.join("L")}Z" fill="${lineColour(line.colour, dark)}" fill-opacity="0.18"/>`);
    }
    drawn.push(`<path d="M${part.map(place(line.y)).join("L")}" ${stroke(line, dark)}${pale}/>`);
    if (part.length === 1) {
      const [index] = part as [number];
      drawn.push(`<circle cx="${xOf(line.x[index] as number)}" cy="${yOf(line.y[index] as number)}" r="2.5" fill="${lineColour(line.colour, dark)}"${pale}/>`);
    }
  }
  if (line.faint) return drawn;
  for (const { x, name } of line.nonFinite ?? []) {
    const y = name === "Infinity" ? edges.top + 6 : edges.bottom - 6;
    const shape = { NaN: "m-4 -4l8 8m0 -8l-8 8", Infinity: "m-4 2h8l-4 -6z" }[name] ?? "m-4 -2h8l-4 6z";
    drawn.push(`<path d="M${xOf(x)} ${y}${shape}" ${stroke({ ...line, dash: 0 }, dark)}><title>${name}</title></path>`);
  }
  return drawn;
}

/** Returns the indexes of the values of each part of a line without a gap. */
function partsBetweenGaps(values: (number | null)[]): number[][] {
  const parts: number[][] = [];
  values.forEach((value, index) => {
    if (typeof value !== "number") return;
    if (index > 0 && typeof values[index - 1] === "number") parts.at(-1)?.push(index);
    else parts.push([index]);
  });
  return parts;
}

function stroke({ colour, dash = 0, faint, pinned }: ChartLine, dark: boolean): string {
  const dashes = DASHES[dash % DASHES.length] ?? [];
  const width = faint ? 1 : pinned ? 2.5 : 1.5;
  return `fill="none" stroke="${lineColour(colour, dark)}" stroke-width="${width}"${dashes.length ? ` stroke-dasharray="${dashes.join(" ")}"` : ""}`;
}

function escapeXml(text: string): string {
  const named: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  // XML has no place for most control characters.
  return text.replace(/[\p{Cc}]/gu, " ").replace(/[&<>"]/g, (character) => named[character] ?? "");
}
