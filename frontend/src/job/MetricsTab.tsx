// Resource usage and program metrics, by role or by task.

import { Segmented, Select } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { hasEnded } from "./jobState";
import MetricCharts from "./MetricCharts";
import { sampleTasks, taskNames } from "./taskNames";

const MAX_LINES = 8;

export default function MetricsTab({ job }: { job: Job }): ReactNode {
  const { query } = useRoute();
  const names = taskNames(job);
  const grouping = query.get("by") ?? (names.length > MAX_LINES ? "role" : "task");
  const selectedTasks = (query.get("tasks") ?? "").split(",").filter(Boolean);
  const byRole = grouping === "role";
  const tasks = byRole ? sampleTasks(job) : selectedTasks.length ? selectedTasks : names.slice(0, MAX_LINES);
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={t("Group lines")}
          value={grouping}
          onChange={(value) => updateQuery({ by: value })}
          options={[
            { value: "role", label: t("By role") },
            { value: "task", label: t("By task") },
          ]}
        />
        {!byRole && (
          <Select
            mode="multiple"
            aria-label={t("Tasks")}
            placeholder={t("The first {count} tasks", { count: Math.min(MAX_LINES, names.length) })}
            value={selectedTasks}
            onChange={(value: string[]) => updateQuery({ tasks: value.join(",") })}
            options={names.map((value) => ({ value, label: value }))}
            style={{ minWidth: 320, maxWidth: 700 }}
          />
        )}
        {byRole && names.length > tasks.length && (
          <span className="muted">
            {t("mean of {count} tasks, sampled evenly from all roles", { count: tasks.length })}
          </span>
        )}
      </div>
      <MetricCharts job={job.id} tasks={tasks} live={!hasEnded(job)} byRole={byRole} />
    </>
  );
}
