import type { ReactNode } from "react";
import type { EventRunsResponse } from "../api";
import { t } from "../language";
import { storedText, translateStored } from "../translateStored";
import { isMemoryError } from "./memoryErrors";

/** Event files that could not be read, or not to their end; and what there was no room for. */
export function EventFileErrors({ errors }: { errors: EventRunsResponse["errors"] }): ReactNode {
  const unread = errors.filter(({ text }) => !isMemoryError(storedText(text)));
  const count = new Set(unread.map(({ file }) => file)).size;
  return (
    <>
      <FileErrorList title={t("{count} event files cannot be read whole", { count })} errors={unread} />
      <FileErrorList
        title={t("Not all that was read is kept in memory")}
        errors={errors.filter(({ text }) => isMemoryError(storedText(text)))}
      />
    </>
  );
}

/** Files or folders with what is wrong with each, folded. */
export function FileErrorList({ title, errors }: { title: string; errors: EventRunsResponse["errors"] }): ReactNode {
  if (!errors.length) return null;
  return (
    <details className="stale">
      <summary>{title}</summary>
      <ul className="mono">
        {errors.map(({ file, text }) => (
          <li key={file + storedText(text)}>
            {file}: {translateStored(text)}
          </li>
        ))}
      </ul>
    </details>
  );
}
