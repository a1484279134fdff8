// The lines of one task's log, and how to get to others of it; only those in view are in the document.

import { Button } from "antd";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useState } from "react";
import { bytes } from "../format";
import { say } from "../language";
import { copy } from "../shell/clipboard";
import { atLeast, indexOf, type LogLine, linesOf } from "./lines";
import { lineAt } from "./parts";
import { BEGINNING } from "./reader";
import { LINE_HEIGHT, useScrolling } from "./scrolling";
import { useSelection } from "./selection";
import { useLog, type Wanted } from "./useLog";

interface Props extends Wanted {
  level: string;
  height: string;
  onAttempts?: (attempts: number[]) => void;
  /** Another place is wanted: BEGINNING, or empty for the end. */
  onPlace: (at: string) => void;
}

/** Another log, or another place in it, begins anew. */
export function LogView(props: Props): ReactNode {
  const [round, setRound] = useState(0);
  const go = (at: string): void => {
    setRound((last) => last + 1);
    props.onPlace(at);
  };
  return (
    <Log key={`${props.task} ${props.attempt} ${props.stream} ${props.at} ${round}`} {...props} onPlace={go} />
  );
}

function Log({ level, height, onAttempts, onPlace, ...wanted }: Props): ReactNode {
  const { log, following, earlier, later } = useLog(wanted);
  const { at } = wanted;
  const lines = useMemo(() => atLeast(linesOf(log.text, log.first), level), [log.text, log.first, level]);
  const isPlace = at !== "" && at !== BEGINNING && !level && log.text !== "";
  // eslint-disable-next-line react-hooks/exhaustive-deps -- a line keeps its number when others come
  const found = useMemo(() => (isPlace ? lineAt(log, Number(at)) : undefined), [isPlace, at]);
  const scrolling = useScrolling(lines, found, at === BEGINNING);
  const told = log.attempts.join(",");
  useEffect(() => {
    if (log.attempts.length) onAttempts?.(log.attempts);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- told only when they have changed
  }, [told]);
  const toBeginning = (): void => (log.from ? onPlace(BEGINNING) : scrolling.toTop());
  const toEnd = (): void => (following ? scrolling.toBottom() : onPlace(""));
  return (
    <>
      <Lines
        lines={lines}
        found={found}
        height={height}
        label={say("Log of {task}", { task: wanted.task })}
        scrolling={scrolling}
      />
      <div className="row muted" style={{ marginTop: 4 }}>
        <Button size="small" onClick={toBeginning}>
          {say("To the beginning")}
        </Button>
        {log.from > 0 && (
          <Button size="small" onClick={earlier}>
            {say("Earlier")}
          </Button>
        )}
        {!following && log.to < log.size && (
          <Button size="small" onClick={later}>
            {say("Later")}
          </Button>
        )}
        <Button size="small" onClick={toEnd}>
          {say("To the end")}
        </Button>
        <Button
          size="small"
          title={say("Copy all lines that are loaded")}
          disabled={!lines.length}
          onClick={() => void copy(lines.map((line) => `${line.text}\n`).join(""))}
        >
          {say("Copy")}
        </Button>
        <span>
          {say("{lines} lines, {part} of {size}", {
            lines: lines.length,
            part: bytes(log.to - log.from),
            size: bytes(log.size),
          })}
        </span>
        {log.complete && <span>{say("It is complete.")}</span>}
        {log.error && <span className="bad">{log.error}</span>}
      </div>
    </>
  );
}

interface LinesProps {
  lines: LogLine[];
  found: number | undefined;
  height: string;
  label: string;
  scrolling: ReturnType<typeof useScrolling>;
}

function Lines({ lines, found, height, label, scrolling }: LinesProps): ReactNode {
  const { box, begin, count, onScroll } = scrolling;
  const { kept, selectAll, onCopy } = useSelection(box, lines);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "a" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    selectAll();
  };
  return (
    <div
      className="log"
      ref={box}
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
        {rowsOf(lines, begin, count, kept).map(({ line, above }) => (
          <div
            key={line.number}
            data-line={line.number}
            className={`${line.level} ${line.number === found ? "found" : ""}`}
            style={{ marginTop: above * LINE_HEIGHT }}
          >
            {line.text || " "}
          </div>
        ))}
      </div>
    </div>
  );
}

interface Row {
  line: LogLine;
  /** How many lines above it are not in the document. */
  above: number;
}

/** `count` lines from `begin` on, and those of the numbers `kept`, in their order. */
function rowsOf(lines: LogLine[], begin: number, count: number, kept: number[]): Row[] {
  const end = Math.min(lines.length, begin + count);
  const seen = Array.from({ length: Math.max(0, end - begin) }, (_, index) => begin + index);
  const others = kept.map((number) => indexOf(lines, number)).filter((index) => index < begin || index >= end);
  const indexes = [...new Set([...seen, ...others])].sort((one, other) => one - other);
  return indexes.flatMap((index, place) => {
    const line = lines[index];
    return line ? [{ line, above: index - (indexes[place - 1] ?? -1) - 1 }] : [];
  });
}
