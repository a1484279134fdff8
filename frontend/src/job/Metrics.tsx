// What the job's tasks use, by role or task by task.

import { Segmented, Select } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { say } from "../language";
import { amend, useRoute } from "../route";
import { hasEnded } from "./jobState";
import { spread, taskNames } from "./names";
import UsageCharts from "./UsageCharts";

const MOST_LINES = 8;

export default function Metrics({ job }: { job: Job }): ReactNode {
  const { query } = useRoute();
  const names = taskNames(job);
  const by = query.get("by") ?? (names.length > MOST_LINES ? "role" : "task");
  const chosen = (query.get("tasks") ?? "").split(",").filter(Boolean);
  const byRole = by === "role";
  const tasks = byRole ? spread(job) : chosen.length ? chosen : names.slice(0, MOST_LINES);
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={say("Lines")}
          value={by}
          onChange={(value) => amend({ by: value })}
          options={[
            { value: "role", label: say("By role") },
            { value: "task", label: say("By task") },
          ]}
        />
        {!byRole && (
          <Select
            mode="multiple"
            aria-label={say("Tasks")}
            placeholder={say("The first {count} tasks", { count: Math.min(MOST_LINES, names.length) })}
            value={chosen}
            onChange={(value: string[]) => amend({ tasks: value.join(",") })}
            options={names.map((value) => ({ value, label: value }))}
            style={{ minWidth: 320, maxWidth: 700 }}
          />
        )}
        {byRole && names.length > tasks.length && (
          <span className="muted">
            {say("the mean of {count} tasks, from all over the roles", { count: tasks.length })}
          </span>
        )}
      </div>
      <UsageCharts job={job.id} tasks={tasks} live={!hasEnded(job)} byRole={byRole} />
    </>
  );
}
