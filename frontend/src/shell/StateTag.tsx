import type { ReactNode } from "react";
import type { State } from "../api";
import { say } from "../language";

const MARKS: Record<State, string> = { PENDING: "◌", RUNNING: "▶", SUCCEEDED: "✓", FAILED: "✕", CANCELLED: "■", STOPPED: "■" };

/** A state, told by a mark and a word as well as by its colour. */
export function StateTag({ state, text }: { state: State; text?: string | undefined }): ReactNode {
  return (
    <span className={`state ${state in MARKS ? state : ""}`}>
      <span aria-hidden="true">{MARKS[state]} </span>
      {text || say(state)}
    </span>
  );
}
