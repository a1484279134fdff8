// One task's log, with buttons to load other parts of it. Only the lines in view are in the document.

import { Button } from "antd";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useState } from "react";
import { copyToClipboard } from "../components/clipboard";
import { formatBytes } from "../format";
import { t } from "../language";
import { filterByLevel, findLineIndex, type LogLine, parseLogLines } from "./logLines";
import { BEGINNING } from "./LogReader";
import { lineNumberAt } from "./logText";
import { useLog, type LogRequest } from "./useLog";
import { LINE_HEIGHT, useLogScrolling } from "./useLogScrolling";
import { useLogSelection } from "./useLogSelection";

interface Props extends LogRequest {
  level: string;
  height: string;
  onAttempts?: (attempts: number[]) => void;
  /** Called with the position to show: BEGINNING, or empty for the end. */
  onPositionChange: (at: string) => void;
}

/** Shows a log. Another log, or another position in it, is read from scratch. */
export function LogView(props: Props): ReactNode {
  const [openCount, setOpenCount] = useState(0);
  const openPosition = (at: string): void => {
    setOpenCount((last) => last + 1);
    props.onPositionChange(at);
  };
  return (
    <LogPanel
      key={`${props.task} ${props.attempt} ${props.stream} ${props.position} ${openCount}`}
      {...props}
      onPositionChange={openPosition}
    />
  );
}

function LogPanel({ level, height, onAttempts, onPositionChange, ...request }: Props): ReactNode {
  const { log, following, loadEarlier, loadLater } = useLog(request);
  const { position } = request;
  const lines = useMemo(
    () => filterByLevel(parseLogLines(log.text, log.firstLine), level),
    [log.text, log.firstLine, level],
  );
  const isPosition = position !== "" && position !== BEGINNING && !level && log.text !== "";
  const foundLine = useMemo(
    () => (isPosition ? lineNumberAt(log, Number(position)) : undefined),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a line keeps its number when lines are added
    [isPosition, position],
  );
  const scrolling = useLogScrolling(lines, foundLine, position === BEGINNING);
  const attemptsKey = log.attempts.join(",");
  useEffect(() => {
    if (log.attempts.length) onAttempts?.(log.attempts);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- called only when the attempts change
  }, [attemptsKey]);
  const goToBeginning = (): void => (log.from ? onPositionChange(BEGINNING) : scrolling.scrollToTop());
  const goToEnd = (): void => (following ? scrolling.scrollToBottom() : onPositionChange(""));
  return (
    <>
      <LogLines
        lines={lines}
        foundLine={foundLine}
        height={height}
        label={t("Log of {task}", { task: request.task })}
        scrolling={scrolling}
      />
      <div className="row muted" style={{ marginTop: 4 }}>
        <Button size="small" onClick={goToBeginning}>
          {t("To the beginning")}
        </Button>
        {log.from > 0 && (
          <Button size="small" onClick={loadEarlier}>
            {t("Earlier")}
          </Button>
        )}
        {!following && log.to < log.size && (
          <Button size="small" onClick={loadLater}>
            {t("Later")}
          </Button>
        )}
        <Button size="small" onClick={goToEnd}>
          {t("To the end")}
        </Button>
        <Button
          size="small"
          title={t("Copy all loaded lines")}
          disabled={!lines.length}
          onClick={() => void copyToClipboard(lines.map((line) => `${line.text}\n`).join(""))}
        >
          {t("Copy")}
        </Button>
        <span>
          {t("{lines} lines, {part} of {size}", {
            lines: lines.length,
            part: formatBytes(log.to - log.from),
            size: formatBytes(log.size),
          })}
        </span>
        {log.complete && <span>{t("The log is complete.")}</span>}
        {log.error && <span className="bad">{log.error}</span>}
      </div>
    </>
  );
}

interface LogLinesProps {
  lines: LogLine[];
  foundLine: number | undefined;
  height: string;
  label: string;
  scrolling: ReturnType<typeof useLogScrolling>;
}

function LogLines({ lines, foundLine, height, label, scrolling }: LogLinesProps): ReactNode {
  const { container, firstRow, rowCount, onScroll } = scrolling;
  const { keptLines, selectAll, onCopy } = useLogSelection(container, lines);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "a" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    selectAll();
  };
  return (
    <div
      className="log"
      ref={container}
      role="log"
      aria-live="off"
      aria-label={label}
      tabIndex={0}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onCopy={onCopy}
      style={{ height }}
    >
      <div className="rows" style={{ height: lines.length * LINE_HEIGHT }}>
        {visibleRows(lines, firstRow, rowCount, keptLines).map(({ line, hiddenAbove }) => (
          <div
            key={line.number}
            data-line={line.number}
            className={`${line.level} ${line.number === foundLine ? "found" : ""}`}
            style={{ marginTop: hiddenAbove * LINE_HEIGHT }}
          >
            {line.text || " "}
          </div>
        ))}
      </div>
    </div>
  );
}

interface LogRow {
  line: LogLine;
  /** How many lines directly above are not in the document. */
  hiddenAbove: number;
}

/** Returns `count` lines from `begin` on, and the lines with the numbers `keptLines`, in the log's order. */
function visibleRows(lines: LogLine[], begin: number, count: number, keptLines: number[]): LogRow[] {
  const end = Math.min(lines.length, begin + count);
  const inView = Array.from({ length: Math.max(0, end - begin) }, (_, index) => begin + index);
  const outOfView = keptLines
    .map((number) => findLineIndex(lines, number))
    .filter((index) => index < begin || index >= end);
  const indexes = [...new Set([...inView, ...outOfView])].sort((one, other) => one - other);
  return indexes.flatMap((index, order) => {
    const line = lines[index];
    return line ? [{ line, hiddenAbove: index - (indexes[order - 1] ?? -1) - 1 }] : [];
  });
}
