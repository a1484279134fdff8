// The table of all tasks with search, filters and sorting; or one task, if the address names it.

import { Input, Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Job, TaskState, Task } from "../api";
import { ColumnPicker, useVisibleColumns } from "../components/ColumnPicker";
import { EmptyState } from "../components/EmptyState";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { StaleNotice } from "../components/StaleNotice";
import { useSortingInAddress } from "../components/useSortingInAddress";
import { VirtualTable } from "../components/VirtualTable";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { hasEnded } from "./jobState";
import { RoleFilter } from "./RoleFilter";
import { StackTracesButton } from "./StackTracesButton";
import { taskColumns } from "./taskColumns";
import { TaskDetails } from "./TaskDetails";

const STATES: TaskState[] = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "STOPPED"];

export default function TasksTab({ job }: { job: Job }): ReactNode {
  const { path, query } = useRoute();
  const polled = usePolling("jobs/{job}/tasks", { job: job.id }, {}, hasEnded(job) ? 0 : 2);
  const allTasks = polled.data?.tasks;
  const search = query.get("text") ?? "";
  const role = query.get("role") ?? "";
  const state = query.get("state") ?? "";
  const stragglersOnly = query.get("slow") === "1";
  const visibleTasks = useMemo(
    () => (allTasks ?? []).filter((task) => matchesFilter(task, search, role, state, stragglersOnly)),
    [allTasks, search, role, state, stragglersOnly],
  );
  const allColumns = useMemo(() => taskColumns(job.id, allTasks ?? []), [job.id, allTasks]);
  const columns = useVisibleColumns(allColumns);
  const sorting = useSortingInAddress();
  if (!allTasks) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const selected = path[3];
  if (selected) {
    const task = allTasks.find((each) => each.task === selected);
    return task ? (
      <TaskDetails job={job} task={task} />
    ) : (
      <EmptyState text={t("There is no task {task}.", { task: selected })} />
    );
  }
  return (
    <>
      <StaleNotice polled={polled} />
      <div className="row" style={{ marginBottom: 8 }}>
        <Input.Search
          allowClear
          aria-label={t("Search tasks")}
          placeholder={t("Task, host, container, exit")}
          defaultValue={search}
          onChange={(event) => updateQuery({ text: event.target.value })}
          style={{ width: 260 }}
        />
        <RoleFilter job={job} />
        <Select
          aria-label={t("State")}
          value={state}
          onChange={(value) => updateQuery({ state: value })}
          options={[{ value: "", label: t("All states") }, ...STATES.map((value) => ({ value, label: t(value) }))]}
          style={{ minWidth: 130 }}
        />
        <LabeledSwitch
          text={t("Stragglers only")}
          on={stragglersOnly}
          onChange={(on) => updateQuery({ slow: on ? 1 : "" })}
        />
        <span className="grow" />
        {!hasEnded(job) && job.can.stacks && <StackTracesButton job={job} />}
        <ColumnPicker columns={allColumns} visible={columns} />
        <span className="muted" role="status">
          {t("{shown} of {all} tasks", { shown: visibleTasks.length, all: allTasks.length })}
        </span>
      </div>
      <VirtualTable
        label={t("Tasks")}
        columns={columns}
        rows={visibleTasks}
        rowKey={(task) => task.task}
        {...sorting}
      />
    </>
  );
}

function matchesFilter(task: Task, search: string, role: string, state: string, stragglersOnly: boolean): boolean {
  if ((role && task.role !== role) || (state && task.state !== state) || (stragglersOnly && !task.straggler))
    return false;
  if (!search) return true;
  const text = [
    task.task,
    task.state,
    task.host,
    task.node,
    task.container,
    task.exit,
    task.gpus.join(" "),
  ]
    .join(" ")
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
