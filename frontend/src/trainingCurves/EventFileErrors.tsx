import type { ReactNode } from "react";
import type { EventRunsResponse } from "../api";
import { t } from "../language";

/** Lists event files that could not be read completely, and values that there was no memory for. */
export function EventFileErrors({ errors }: { errors: EventRunsResponse["errors"] }): ReactNode {
  const unread = errors.filter(({ memory }) => !memory);
  const count = new Set(unread.map(({ file }) => file)).size;
  return (
    <>
      <FileErrorList title={t("{count} event files could not be read completely", { count })} errors={unread} />
      <FileErrorList
        title={t("Some values are left out because memory is limited")}
        errors={errors.filter(({ memory }) => memory)}
      />
    </>
  );
}

/** A collapsed list of files or directories with the error of each. */
export function FileErrorList({ title, errors }: { title: string; errors: EventRunsResponse["errors"] }): ReactNode {
  if (!errors.length) return null;
  return (
    <details className="notice">
      <summary>{title}</summary>
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
