import type { ReactNode } from "react";
import type { TaskState } from "../api";
import { t } from "../language";

const STATE_SYMBOLS: Record<TaskState, string> = {
  PENDING: "◌",
  RUNNING: "▶",
  SUCCEEDED: "✓",
  FAILED: "✕",
  CANCELLED: "■",
  STOPPED: "■",
};

/** A state as a symbol and a word, because colour alone is not enough. */
export function StateTag({ state, text }: { state: TaskState; text?: string | undefined }): ReactNode {
  return (
    <span className={`state ${state in STATE_SYMBOLS ? state : ""}`}>
      <span aria-hidden="true">{STATE_SYMBOLS[state]} </span>
      {text || t(state)}
    </span>
  );
}
