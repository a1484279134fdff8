// The timeline as a table: a row for each start of a program, its phases as a bar below an axis of time.

import { type CSSProperties, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { selectRange } from "../components/timeRange";
import { useSortingInAddress } from "../components/useSortingInAddress";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { t } from "../language";
import { href } from "../router";
import { LogLink } from "./LogLink";
import { timeTicks } from "./timeAxis";
import { describeRow, type Mark, phaseColour, type TimelineRow } from "./timelineRows";

interface Props {
  job: string;
  rows: TimelineRow[];
  marks: Mark[];
  /** The time that is shown, Unix seconds. */
  from: number;
  to: number;
  /** The end of phases that last. */
  now: number;
}

export function TimelineTable({ job, rows, marks, from, to, now }: Props): ReactNode {
  const [width, setWidth] = useState(0);
  const columns = useMemo(() => {
    const share = (seconds: number): number => ((seconds - from) / Math.max(1e-3, to - from)) * 100;
    const lines = lineStyle(from, to, width, marks, share);
    return timelineColumns(
      job,
      (row) => <Bar job={job} row={row} share={share} now={now} lines={lines} />,
      <TimeAxis from={from} to={to} width={width} onWidth={setWidth} share={share} />,
    );
  }, [job, marks, from, to, now, width]);
  return (
    <VirtualTable
      label={t("Timeline of {count} tasks", { count: new Set(rows.map(({ task }) => task)).size })}
      columns={columns}
      rows={rows}
      rowKey={(row) => `${row.task} ${row.try_number}`}
      height="max(240px, calc(100vh - 420px))"
      {...useSortingInAddress()}
    />
  );
}

function timelineColumns(
  job: string,
  bar: (row: TimelineRow) => ReactNode,
  axis: ReactNode,
): TableColumn<TimelineRow>[] {
  return [
    {
      key: "task",
      title: t("Task"),
      width: "minmax(104px, 0.7fr)",
      sortValue: (row) => row.name,
      cell: (row) => <a href={href(["jobs", job, "tasks", row.task])}>{row.name}</a>,
      tooltip: (row) => row.name,
    },
    { key: "phases", title: t("Phases"), width: "minmax(150px, 5fr)", className: "timeline-cell", header: axis, cell: bar },
    {
      key: "exit",
      title: t("Exit"),
      width: "minmax(150px, 1.4fr)",
      sortValue: (row) => row.exit || row.state,
      cell: (row) => (
        <span className={row.state === "FAILED" ? "bad" : row.state === "STOPPED" ? "muted" : ""}>
          {row.failure && <strong>{row.failure}: </strong>}
          {row.exit || t(row.state)}
        </span>
      ),
      tooltip: (row) => row.exit,
    },
    {
      key: "log",
      title: t("Log"),
      width: "52px",
      cell: (row) => row.started && <LogLink job={job} start={row} />,
    },
  ];
}

type Share = (seconds: number) => number;

interface BarProps {
  job: string;
  row: TimelineRow;
  share: Share;
  now: number;
  lines: CSSProperties;
}

/** The phases of one start. A click opens its task; the link in the first column does so by keyboard. */
function Bar({ job, row, share, now, lines }: BarProps): ReactNode {
  const description = describeRow(row, now);
  return (
    <a
      className={`timeline-bar ${row.state}`}
      href={href(["jobs", job, "tasks", row.task])}
      tabIndex={-1}
      title={description}
      aria-label={description}
      style={lines}
    >
      {row.spans.map(({ phase, start, end }) => {
        const [begins, ends] = [share(start), share(end || now)];
        if (ends < 0 || begins > 100) return null;
        const left = Math.max(0, begins);
        const style = {
          left: `${left}%`,
          width: `${Math.max(0, Math.min(100, ends) - left)}%`,
          background: phaseColour(phase),
        };
        return <span key={phase} className={`${phase} ${end && ends <= 100 ? "ended" : ""}`} style={style} />;
      })}
    </a>
  );
}

/** Draws the lines of ticks and marks as backgrounds, because each row has all of them. */
function lineStyle(from: number, to: number, width: number, marks: Mark[], share: Share): CSSProperties {
  const line = (seconds: number, colour: string, pixels: number): string | undefined => {
    const at = share(seconds);
    if (at < 0 || at > 100) return undefined;
    return `linear-gradient(var(${colour}), var(${colour})) ${at}% 0 / ${pixels}px 100% no-repeat`;
  };
  const shown = [
    ...marks.filter(({ kind }) => kind === "failure").map(({ seconds }) => line(seconds, "--bad", 2)),
    ...marks.filter(({ kind }) => kind === "event").map(({ seconds }) => line(seconds, "--muted", 1)),
    ...timeTicks(from, to, width).map(({ seconds }) => line(seconds, "--border", 1)),
  ];
  return { background: shown.filter(Boolean).join(", ") };
}

interface AxisProps {
  from: number;
  to: number;
  width: number;
  onWidth: (width: number) => void;
  share: Share;
}

const MIN_DRAG_PIXELS = 6;

/** The axis. Dragging along it selects the time that is shown. */
function TimeAxis({ from, to, width, onWidth, share }: AxisProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number]>();
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => onWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [onWidth]);
  const pixel = (clientX: number): number =>
    Math.min(width, Math.max(0, clientX - (box.current?.getBoundingClientRect().left ?? 0)));
  const finish = (): void => {
    if (drag && Math.abs(drag[1] - drag[0]) >= MIN_DRAG_PIXELS) {
      const [first, last] = [Math.min(...drag), Math.max(...drag)].map((at) => from + ((to - from) * at) / width);
      selectRange(first as number, last as number);
    }
    setDrag(undefined);
  };
  return (
    <div
      ref={box}
      className="time-axis"
      title={t("Drag to choose a time range")}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag([pixel(event.clientX), pixel(event.clientX)]);
      }}
      onPointerMove={(event) => drag && setDrag([drag[0], pixel(event.clientX)])}
      onPointerUp={finish}
      onPointerCancel={() => setDrag(undefined)}
    >
      {timeTicks(from, to, width).map(
        ({ seconds, label }) =>
          label && (
            <span key={seconds} style={{ left: `${share(seconds)}%` }}>
              {label}
            </span>
          ),
      )}
      {drag && <i style={{ left: Math.min(...drag), width: Math.abs(drag[1] - drag[0]) }} />}
    </div>
  );
}
