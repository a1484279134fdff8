import type { ReactNode } from "react";
import type { Runs } from "../api";
import { say } from "../language";

/** Event files that could not be read, or not to their end. */
export function RunErrors({ errors }: { errors: Runs["errors"] }): ReactNode {
  if (!errors.length) return null;
  return (
    <details className="stale">
      <summary>{say("{count} event files cannot be read whole", { count: errors.length })}</summary>
      <ul className="mono">
        {errors.map(({ file, text }) => (
          <li key={file + text}>
            {file}: {text}
          </li>
        ))}
      </ul>
    </details>
  );
}
