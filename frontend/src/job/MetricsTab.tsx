// Resource usage and program metrics, by role, task, node or GPU, over a range of time.

import { Segmented, Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { Job, Task } from "../api";
import { EmptyState } from "../components/EmptyState";
import { RangePicker } from "../components/RangePicker";
import { useTimeRange } from "../components/timeRange";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { hasEnded } from "./jobState";
import MetricCharts from "./MetricCharts";
import type { LineGroups } from "./metricLines";
import { MAX_TASKS_PER_REQUEST, sampleTasks, taskNames } from "./taskNames";

const MAX_LINES = 8;
const PLACES_POLL_S = 15;
const ROLE_GROUPS: LineGroups = { nameOf: (task) => task.split(":")[0] as string, counted: true };

export default function MetricsTab({ job }: { job: Job }): ReactNode {
  const { query } = useRoute();
  const names = taskNames(job);
  const grouping = query.get("by") ?? (names.length > MAX_LINES ? "role" : "task");
  const range = useTimeRange();
  const hasGpus = job.roles.some(({ resources }) => Number(resources["gpus"]) > 0);
  const ofPlaces = grouping === "node" || grouping === "gpu";
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={t("Group lines")}
          className="wrapping"
          value={grouping}
          onChange={(value) => updateQuery({ by: value, tasks: "", nodes: "" })}
          options={[
            { value: "role", label: t("By role") },
            { value: "task", label: t("By task") },
            { value: "node", label: t("By node") },
            ...(hasGpus ? [{ value: "gpu", label: t("By GPU") }] : []),
          ]}
        />
        <RangePicker />
      </div>
      {ofPlaces ? (
        <ChartsByPlace job={job} range={range} byGpu={grouping === "gpu"} />
      ) : (
        <ChartsByTask job={job} range={range} byRole={grouping === "role"} names={names} />
      )}
    </>
  );
}

interface ChartsProps {
  job: Job;
  range: ReturnType<typeof useTimeRange>;
}

function ChartsByTask({ job, range, byRole, names }: ChartsProps & { byRole: boolean; names: string[] }): ReactNode {
  const selected = useRoute().query.get("tasks")?.split(",").filter(Boolean) ?? [];
  const tasks = byRole ? sampleTasks(job) : selected.length ? selected : names.slice(0, MAX_LINES);
  return (
    <>
      {!byRole && (
        <div className="row" style={{ marginBottom: 8 }}>
          <Select
            mode="multiple"
            aria-label={t("Tasks")}
            placeholder={t("The first {count} tasks", { count: Math.min(MAX_LINES, names.length) })}
            value={selected}
            onChange={(value: string[]) => updateQuery({ tasks: value.join(",") })}
            options={names.map((value) => ({ value, label: value }))}
            style={{ minWidth: "min(320px, 100%)", maxWidth: 700 }}
          />
        </div>
      )}
      {byRole && names.length > tasks.length && (
        <p className="muted" style={{ margin: "0 0 8px" }}>
          {t("mean of {count} tasks, sampled evenly from all roles", { count: tasks.length })}
        </p>
      )}
      <MetricCharts job={job.id} tasks={tasks} live={!hasEnded(job)} groups={byRole ? ROLE_GROUPS : undefined} range={range} />
    </>
  );
}

/** The charts by node, or by the GPUs of each task; as many whole nodes as one request may name tasks. */
function ChartsByPlace({ job, range, byGpu }: ChartsProps & { byGpu: boolean }): ReactNode {
  const polled = usePolling("jobs/{job}/tasks", { job: job.id }, {}, hasEnded(job) ? 0 : PLACES_POLL_S);
  const chosen = useRoute().query.get("nodes") ?? "";
  const all = polled.data?.tasks;
  const nodes = useMemo(() => tasksByNode(all ?? [], byGpu), [all, byGpu]);
  const shown = useMemo(() => selectNodes(nodes, chosen.split(",").filter(Boolean)), [nodes, chosen]);
  const places = JSON.stringify([...shown].map(([node, tasks]) => [node, tasks.map(placeOf)]));
  const groups = useMemo(() => placeGroups(JSON.parse(places) as Places, byGpu), [places, byGpu]);
  if (!all) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const tasks = [...shown.values()].flat().map(({ task }) => task);
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Select
          mode="multiple"
          aria-label={t("Nodes")}
          placeholder={t("{shown} of {all} nodes", { shown: shown.size, all: nodes.size })}
          value={chosen.split(",").filter(Boolean)}
          onChange={(value: string[]) => updateQuery({ nodes: value.join(",") })}
          options={[...nodes.keys()].map((value) => ({ value, label: value }))}
          style={{ minWidth: "min(320px, 100%)", maxWidth: 700 }}
        />
        <span className="muted">
          {byGpu
            ? t("The GPUs of each task; of several GPUs the mean.")
            : t("What this job's tasks use of a node together; of GPUs, progress and programs' metrics the mean.")}
        </span>
      </div>
      <MetricCharts job={job.id} tasks={tasks} live={!hasEnded(job)} groups={groups} range={range} />
    </>
  );
}

function tasksByNode(tasks: Task[], byGpu: boolean): Map<string, Task[]> {
  const nodes = new Map<string, Task[]>();
  for (const task of tasks) {
    const node = task.node || task.host;
    if (node && !(byGpu && !task.gpus.length)) nodes.set(node, [...(nodes.get(node) ?? []), task]);
  }
  return nodes;
}

/** Returns the chosen nodes, or the first ones: all whose tasks one request may name, but at least one. */
function selectNodes(nodes: Map<string, Task[]>, chosen: string[]): Map<string, Task[]> {
  const selected = new Map<string, Task[]>();
  let left = MAX_TASKS_PER_REQUEST;
  for (const [node, tasks] of nodes) {
    if (chosen.length && !chosen.includes(node)) continue;
    if (tasks.length > left && selected.size) break;
    selected.set(node, tasks.slice(0, left));
    left -= tasks.length;
  }
  return selected;
}

type Place = [task: string, gpus: string];
type Places = [node: string, tasks: Place[]][];

function placeOf({ task, gpus }: Task): Place {
  return [task, gpus.join(", ")];
}

function placeGroups(places: Places, byGpu: boolean): LineGroups {
  const names = new Map<string, string>();
  for (const [node, tasks] of places)
    for (const [task, gpus] of tasks)
      names.set(task, byGpu ? t("{node}, GPU {gpus} ({task})", { node, gpus, task }) : node);
  return { nameOf: (task) => names.get(task) ?? "", counted: !byGpu, sum: !byGpu, gpusOnly: byGpu };
}
