// A link to one start's part of a task's log.

import type { ReactNode } from "react";
import { t } from "../language";
import { href } from "../router";

/** Opens the log where the output of one start of a program begins. */
export function LogLink({
  job,
  start,
}: {
  job: string;
  start: { task: string; try_number: number; attempt: number; log_offset: number | null };
}): ReactNode {
  const { task, try_number, attempt, log_offset } = start;
  return (
    <a
      href={href(["jobs", job, "logs"], { task, attempt, at: log_offset ?? "" })}
      aria-label={t("Log of {task}, attempt {number}", { task, number: try_number })}
    >
      {t("Log")}
    </a>
  );
}
