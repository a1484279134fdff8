import { Select } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { taskNames } from "../job/taskNames";
import { t } from "../language";
import { updateQuery } from "../router";

/** The value of `among` for the task whose log is shown, whichever that is. */
export const SHOWN_TASK = "here";

interface Props {
  job: Job;
  scope: string;
  /** A task is shown below, which can be chosen as such. */
  withShownTask?: boolean;
}

/** Chooses tasks, roles or ranks, from a list or by typing. An empty choice means all tasks. */
export function TaskScope({ job, scope, withShownTask = false }: Props): ReactNode {
  const names = [...job.roles.map(({ name }) => name), ...taskNames(job)];
  const options = [
    ...(withShownTask ? [{ value: SHOWN_TASK, label: t("The task shown below") }] : []),
    ...names.map((value) => ({ value, label: value })),
  ];
  const choose = (values: string[]): void => {
    const newest = values.at(-1);
    const scopes = newest === SHOWN_TASK ? [SHOWN_TASK] : values.filter((value) => value !== SHOWN_TASK);
    updateQuery({ among: scopes.join(",") });
  };
  return (
    <Select
      mode="tags"
      size="small"
      aria-label={withShownTask ? t("Search in") : t("Tasks")}
      placeholder={t("All tasks; or worker:0-7")}
      value={scope.split(",").filter((each) => each && (withShownTask || each !== SHOWN_TASK))}
      options={options}
      onChange={choose}
      tokenSeparators={[",", " "]}
      style={{ minWidth: 220, maxWidth: 480 }}
    />
  );
}
