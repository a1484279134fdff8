// A strip with a cell for each value, for thousands of values. The arrow keys go from cell to cell, Enter opens one.

import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { cssVariables, lineColour, useDarkMode } from "../theme";
import { layoutCells } from "./stripLayout";

interface Props {
  label: string;
  /** Shares, 0 to 1; null for what was not measured. */
  values: (number | null)[];
  oddIndex: number | null;
  describe: (index: number) => string;
  onPoint: (index: number | null) => void;
  onOpen: (index: number) => void;
}

/** The least visible strength of a cell's colour. */
const MIN_OPACITY = 0.1;

export function StripCanvas({ label, values, oddIndex, describe, onPoint, onOpen }: Props): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [focused, setFocused] = useState<number | null>(null);
  const dark = useDarkMode();
  const current = Math.min(focused ?? oddIndex ?? 0, values.length - 1);
  const layout = layoutCells({ count: values.length, width });
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current && width) drawCells(canvas.current, width, values, oddIndex, focused, dark);
  }, [values, width, oddIndex, focused, dark]);
  const point = (index: number | null): void => {
    setFocused(index);
    onPoint(index);
  };
  const cellAt = (event: MouseEvent): number | null => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / layout.cellWidth);
    const row = Math.floor((event.clientY - box.top) / layout.cellHeight);
    const index = row * layout.columns + column;
    return column >= 0 && column < layout.columns && index >= 0 && index < values.length ? index : null;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const targets: Record<string, number> = {
      ArrowRight: current + 1,
      ArrowLeft: current - 1,
      ArrowDown: current + layout.columns,
      ArrowUp: current - layout.columns,
      Home: 0,
      End: values.length - 1,
    };
    const target = targets[event.key];
    if (event.key === "Enter") onOpen(current);
    else if (target !== undefined) point(Math.max(0, Math.min(values.length - 1, target)));
    else return;
    event.preventDefault();
  };
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={1}
      aria-valuemax={values.length}
      aria-valuenow={current + 1}
      aria-valuetext={describe(current)}
      className="strip"
      style={{ height: layout.height }}
      onFocus={() => point(current)}
      onBlur={() => point(null)}
      onKeyDown={onKeyDown}
      onMouseMove={(event) => point(cellAt(event))}
      onMouseLeave={() => point(null)}
      onClick={(event) => {
        const index = cellAt(event);
        if (index !== null) onOpen(index);
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}

function drawCells(
  canvas: HTMLCanvasElement,
  width: number,
  values: (number | null)[],
  oddIndex: number | null,
  focused: number | null,
  dark: boolean,
): void {
  const { columns, cellWidth, cellHeight, height } = layoutCells({ count: values.length, width });
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(ratio, ratio);
  const colours = cssVariables(dark);
  const gap = Math.min(cellWidth, cellHeight) > 4 ? 1 : 0.5;
  const box = (index: number): [number, number, number, number] => [
    (index % columns) * cellWidth,
    Math.floor(index / columns) * cellHeight,
    cellWidth - gap,
    cellHeight - gap,
  ];
  values.forEach((value, index) => {
    context.globalAlpha = value === null ? 1 : MIN_OPACITY + (1 - MIN_OPACITY) * Math.min(1, value);
    context.fillStyle = value === null ? colours["--raised"] : lineColour(0, dark);
    context.fillRect(...box(index));
  });
  context.globalAlpha = 1;
  context.lineWidth = 2;
  for (const [index, colour] of [
    [oddIndex, colours["--bad"]],
    [focused, colours["--text"]],
  ] as const) {
    if (index === null) continue;
    const [x, y, w, h] = box(index);
    context.strokeStyle = colour;
    context.strokeRect(Math.max(1, x), Math.max(1, y), Math.min(w, width - x - 2), Math.min(h, height - y - 2));
  }
}
