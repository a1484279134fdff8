// The lines of one task's log; only those in view are in the document. It stays at the end until one scrolls up.

import { Button } from "antd";
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { bytes } from "../format";
import { say } from "../language";
import { atLeast, type LogLine, linesOf } from "./lines";
import { useTail, type Wanted } from "./tail";

const LINE = 18;
const MORE = 20;

interface Props extends Wanted {
  level: string;
  height: string;
  onAttempts?: (attempts: number[]) => void;
}

/** Another log, or another place in it, begins anew. */
export function LogView(props: Props): ReactNode {
  return <Log key={`${props.task} ${props.attempt} ${props.stream} ${props.at}`} {...props} />;
}

function Log({ level, height, onAttempts, ...wanted }: Props): ReactNode {
  const { log, earlier } = useTail(wanted);
  const lines = useMemo(() => atLeast(linesOf(log.text), level), [log.text, level]);
  const found = useMemo(() => lineAt(log.text, log.from, wanted.at), [log.text, log.from, wanted.at]);
  const told = log.attempts.join(",");
  useEffect(() => {
    if (log.attempts.length) onAttempts?.(log.attempts);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- told only when they have changed
  }, [told]);
  return (
    <>
      <Lines
        lines={lines}
        found={level ? -1 : found}
        height={height}
        label={say("Log of {task}", { task: wanted.task })}
      />
      <div className="row muted" style={{ marginTop: 4 }}>
        {log.from > 0 && (
          <Button size="small" onClick={earlier}>
            {say("Earlier")}
          </Button>
        )}
        <span>
          {say("{lines} lines, {part} of {size}", {
            lines: lines.length,
            part: bytes(log.text.length),
            size: bytes(log.size),
          })}
        </span>
        {log.complete && <span>{say("It is complete.")}</span>}
        {log.error && <span className="bad">{log.error}</span>}
      </div>
    </>
  );
}

/** The number of the line that begins at or before a place in the stream; -1 without a place. */
function lineAt(text: string, from: number, at: string): number {
  if (at === "" || !text) return -1;
  const before = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, Math.max(0, Number(at) - from)));
  return before.split("\n").length - 1;
}

interface LinesProps {
  lines: LogLine[];
  found: number;
  height: string;
  label: string;
}

function Lines({ lines, found, height, label }: LinesProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(found < 0);
  const shownFound = useRef(false);
  const [first, setFirst] = useState(0);
  const look = (): void => {
    const place = box.current;
    if (!place) return;
    atEnd.current = place.scrollTop + place.clientHeight >= place.scrollHeight - LINE;
    setFirst(Math.max(0, Math.floor(place.scrollTop / LINE) - MORE));
  };
  useLayoutEffect(() => {
    const place = box.current;
    if (!place || !lines.length) return;
    if (found >= 0 && !shownFound.current) {
      shownFound.current = true;
      atEnd.current = false;
      place.scrollTop = Math.max(0, (found - 5) * LINE);
    } else if (atEnd.current) place.scrollTop = place.scrollHeight;
    setFirst(Math.max(0, Math.floor(place.scrollTop / LINE) - MORE));
  }, [lines, found]);
  const count = Math.ceil((box.current?.clientHeight ?? 600) / LINE) + 2 * MORE;
  return (
    <div
      className="log"
      ref={box}
      role="log"
      aria-live="off"
      aria-label={label}
      tabIndex={0}
      onScroll={look}
      style={{ height }}
    >
      <div className="rows" style={{ height: lines.length * LINE }}>
        {lines.slice(first, first + count).map((line, index) => (
          <div
            
            key={first + index}
            className={`${line.level} ${first + index === found ? "found" : ""}`}
            style={{ top: (first + index) * LINE }}
          >
            {line.text || " "}
          </div>
        ))}
      </div>
    </div>
  );
}
