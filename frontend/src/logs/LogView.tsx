// One task's log, with buttons to load other parts of it.

import { Button } from "antd";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { copyToClipboard } from "../components/clipboard";
import { formatBytes } from "../format";
import { t } from "../language";
import { href, useRoute } from "../router";
import { type GutterLayout, LogRows, TIME_COLUMNS, useLogRows } from "./LogRows";
import { filterByLevel, type LogLine, parseLogLines } from "./logLines";
import { BEGINNING } from "./LogReader";
import { byteOffsets, lineNumberAt, lineTime, type LogText, streamLineNumber } from "./logText";
import { useLog, type LogRequest } from "./useLog";

/** What is shown beside the lines, and how. */
export interface LogOptions {
  numbers: boolean;
  times: boolean;
  wrap: boolean;
}

const DEFAULT_OPTIONS: LogOptions = { numbers: true, times: false, wrap: false };

interface Props extends LogRequest {
  level: string;
  height: string;
  options?: LogOptions;
  onAttempts?: (attempts: number[]) => void;
  /** Called with the position to show: BEGINNING, or empty for the end. */
  onPositionChange: (at: string) => void;
  /** Called when a line is chosen, with the part of its address after `?`. Without it the address is opened. */
  onChooseLine?: (query: Record<string, string>) => void;
}

/** Shows a log. Another log, or another position in it, is read from scratch; a line that is chosen is only marked. */
export function LogView(props: Props): ReactNode {
  const [openCount, setOpenCount] = useState(0);
  const key = viewKey(props);
  const opened = useRef({ key, attempt: props.attempt, position: props.position });
  const chosenKey = useRef("");
  if (key !== chosenKey.current) {
    opened.current = { key, attempt: props.attempt, position: props.position };
    chosenKey.current = "";
  }
  const openPosition = (at: string): void => {
    chosenKey.current = "";
    setOpenCount((last) => last + 1);
    props.onPositionChange(at);
  };
  const { onChooseLine } = props;
  const chooseLine = (address: string): void => {
    const query = Object.fromEntries(new URLSearchParams(address.split("?")[1]));
    chosenKey.current = viewKey({ ...props, attempt: query.attempt ?? "", position: query.at ?? "" });
    onChooseLine?.(query);
  };
  return (
    <LogPanel
      key={`${opened.current.key} ${openCount}`}
      {...props}
      attempt={opened.current.attempt}
      position={opened.current.position}
      markedPosition={props.position}
      onPositionChange={openPosition}
      onChoose={onChooseLine && chooseLine}
    />
  );
}

function viewKey({ task, attempt, stream, position }: LogRequest): string {
  return `${task} ${attempt} ${stream} ${position}`;
}

interface PanelProps extends Omit<Props, "onChooseLine"> {
  /** The position whose line is marked. */
  markedPosition: string;
  onChoose: ((address: string) => void) | undefined;
}

function LogPanel(props: PanelProps): ReactNode {
  const { level, height, options = DEFAULT_OPTIONS, onAttempts, onPositionChange } = props;
  const { markedPosition, onChoose, ...request } = props;
  const { log, following, loadEarlier, loadLater } = useLog(request);
  const lines = useMemo(
    () => filterByLevel(parseLogLines(log.text, log.firstLine), level, log.streams),
    [log.text, log.firstLine, log.streams, level],
  );
  const foundLine = useFoundLine(log, level ? "" : markedPosition);
  const gutter = useGutter(log, request, options, lines.at(-1)?.number ?? 0);
  const rows = useLogRows(lines, { wrap: options.wrap, gutter, foundLine, atTop: request.position === BEGINNING });
  const attemptsKey = log.attempts.join(",");
  useEffect(() => {
    if (log.attempts.length) onAttempts?.(log.attempts);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- called only when the attempts change
  }, [attemptsKey]);
  const { scrolling } = rows;
  const goToBeginning = (): void => (log.from ? onPositionChange(BEGINNING) : scrolling.scrollToTop());
  const goToEnd = (): void => (following ? scrolling.scrollToBottom() : onPositionChange(""));
  return (
    <>
      <LogRows state={rows} height={height} label={t("Log of {task}", { task: request.task })} onChooseLine={onChoose} />
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
        <CopyLinesButton lines={lines} />
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

/** Copies all lines that are loaded. */
export function CopyLinesButton({ lines }: { lines: LogLine[] }): ReactNode {
  return (
    <Button
      size="small"
      title={t("Copy all loaded lines")}
      disabled={!lines.length}
      onClick={() => void copyToClipboard(lines.map((line) => `${line.text}\n`).join(""))}
    >
      {t("Copy")}
    </Button>
  );
}

/** Returns the number of the line at this position, an offset in bytes. */
function useFoundLine(log: LogText, position: string): number | undefined {
  const isPosition = position !== "" && position !== BEGINNING && log.text !== "";
  return useMemo(
    () => (isPosition ? lineNumberAt(log, Number(position)) : undefined),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a line keeps its number when lines are added
    [isPosition, position],
  );
}

/** Returns the numbers and times beside the lines. A line without a known number is named by its offset in bytes. */
function useGutter(
  log: LogText,
  request: LogRequest,
  { numbers, times }: LogOptions,
  lastLine: number,
): GutterLayout {
  const { path, query } = useRoute();
  const { job, task, stream } = request;
  const attempt = request.attempt || `${log.attempts.at(-1) ?? ""}`;
  const current = path[2] === "logs" ? Object.fromEntries(query) : {};
  const contents = (lines: LogLine[]): ReturnType<GutterLayout["contents"]> => {
    const offsets = byteOffsets(
      log,
      lines.map(({ from }) => from),
    );
    return lines.map((line, index) => {
      const number = streamLineNumber(log, line.number);
      const at = offsets[index] ?? 0;
      const place = {
        text: number === undefined ? `@${at}` : `${number}`,
        href: href(["jobs", job, "logs"], { ...current, task, stream, attempt, at }),
        title: number === undefined ? t("Link to this line, at byte {at}", { at }) : t("Link to this line"),
      };
      return { time: lineTime(log, line.number), ...(numbers ? { place } : {}) };
    });
  };
  const largest = log.numbering.every(({ value }) => value) ? streamLineNumber(log, lastLine) : undefined;
  return {
    timeColumns: times ? TIME_COLUMNS : 0,
    placeColumns: numbers ? `${largest ?? `@${log.to}`}`.length : 0,
    contents,
  };
}
