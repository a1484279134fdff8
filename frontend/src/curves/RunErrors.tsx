import type { ReactNode } from "react";
import type { Runs } from "../api";
import { say } from "../language";
import { english, retold } from "../retold";
import { isOfMemory } from "./errors";

/** Event files that could not be read, or not to their end; and what there was no room for. */
export function RunErrors({ errors }: { errors: Runs["errors"] }): ReactNode {
  const unread = errors.filter(({ text }) => !isOfMemory(english(text)));
  const count = new Set(unread.map(({ file }) => file)).size;
  return (
    <>
      <Told title={say("{count} event files cannot be read whole", { count })} errors={unread} />
      <Told
        title={say("Not all that was read is kept in memory")}
        errors={errors.filter(({ text }) => isOfMemory(english(text)))}
      />
    </>
  );
}

/** Files or folders with what is wrong with each, folded. */
export function Told({ title, errors }: { title: string; errors: Runs["errors"] }): ReactNode {
  if (!errors.length) return null;
  return (
    <details className="stale">
      <summary>{title}</summary>
      <ul className="mono">
        {errors.map(({ file, text }) => (
          <li key={file + english(text)}>
            {file}: {retold(text)}
          </li>
        ))}
      </ul>
    </details>
  );
}
