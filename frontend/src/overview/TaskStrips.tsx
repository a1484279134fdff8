// GPU, CPU and memory of all tasks: a strip each, with a cell for each task. The odd one out is named and framed.

import { type ReactNode, useMemo, useState } from "react";
import type { Job, Task } from "../api";
import { formatMib, formatNumber, formatPercent } from "../format";
import { t } from "../language";
import { href, navigate } from "../router";
import { findOddTask, median, type MeasuredTask } from "./oddTask";
import { StripCanvas } from "./StripCanvas";

interface Measure {
  name: string;
  cells: MeasuredTask[];
  /** Returns what a task uses, "" if the share says it. */
  describe: (task: Task) => string;
}

export function TaskStrips({ job, tasks }: { job: Job; tasks: Task[] }): ReactNode {
  const measures = useMemo(() => listMeasures(job, tasks), [job, tasks]);
  if (!tasks.some(isRunning)) return null;
  return (
    <section className="card">
      <h2>
        <a href={href(["jobs", job.id, "tasks"])}>{t("Use of all tasks")}</a>
      </h2>
      {measures.map((measure) => (
        <TaskStrip key={measure.name} job={job} tasks={tasks} measure={measure} />
      ))}
    </section>
  );
}

function isRunning(task: Task): boolean {
  return task.state === "RUNNING";
}

/** Lists the measures that some task has, as shares of what each task asked for. */
function listMeasures(job: Job, tasks: Task[]): Measure[] {
  const resources = new Map(job.roles.map((role) => [role.name, role.resources]));
  const share = (task: Task, used: number, resource: string): number | null => {
    const asked = Number(resources.get(task.role)?.[resource] ?? 0);
    const sampled = task.memory_mib > 0; // a program that waits uses no CPU, but always memory
    return asked > 0 && sampled ? used / asked : null;
  };
  const measure = (
    name: string,
    value: (task: Task) => number | null,
    describe: (task: Task) => string,
  ): Measure => ({
    name,
    cells: tasks.map((task) => ({ role: task.role, value: isRunning(task) ? value(task) : null })),
    describe,
  });
  const all = [
    measure(t("GPU"), ({ gpu }) => gpu, () => ""),
    measure(
      t("CPU"),
      (task) => share(task, task.cpu, "vcores"),
      ({ cpu }) => t("{count} CPU", { count: formatNumber(cpu, 2) }),
    ),
    measure(
      t("Memory"),
      (task) => share(task, task.memory_mib, "memory_mib"),
      ({ memory_mib }) => formatMib(memory_mib),
    ),
  ];
  return all.filter(({ cells }) => cells.some(({ value }) => value !== null));
}

function TaskStrip({ job, tasks, measure }: { job: Job; tasks: Task[]; measure: Measure }): ReactNode {
  const [pointed, setPointed] = useState<number | null>(null);
  const { name, cells } = measure;
  const odd = useMemo(() => findOddTask(cells), [cells]);
  const middle = useMemo(() => median(cells.flatMap(({ value }) => (value === null ? [] : [value]))), [cells]);
  const named = pointed ?? odd?.index ?? null;
  const task = named === null ? undefined : tasks[named];
  const describe = (index: number): string => {
    const each = tasks[index];
    const share = cells[index]?.value ?? null;
    if (!each) return "";
    if (share === null) return `${each.task}: ${t(each.state)}`;
    const used = measure.describe(each);
    return `${each.task}: ${used ? `${used} (${formatPercent(share)})` : formatPercent(share)}`;
  };
  return (
    <div className="task-strip">
      <div className="row">
        <strong>{name}</strong>
        <span className="muted">{t("median {value}", { value: formatPercent(middle) })}</span>
        <span className="grow" />
        {task && named !== null && (
          <a href={href(["jobs", job.id, "tasks", task.task])} className={pointed === null ? "bad" : ""}>
            {pointed === null && `${t("out of line")}: `}
            {describe(named)}
          </a>
        )}
      </div>
      <StripCanvas
        label={t("{name} of all tasks", { name })}
        values={cells.map(({ value }) => value)}
        oddIndex={odd?.index ?? null}
        describe={describe}
        onPoint={setPointed}
        onOpen={(index) => tasks[index] && navigate(["jobs", job.id, "tasks", tasks[index].task])}
      />
    </div>
  );
}
