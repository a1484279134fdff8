// Finds the job that a container, a pod, host:pid or a GPU belongs to, or jobs by name, id or other words.

import { Input, message } from "antd";
import type { ReactNode } from "react";
import { apiGet } from "../apiClient";
import { t } from "../language";
import { navigate } from "../router";

export function JobFinder(): ReactNode {
  const find = async (text: string): Promise<void> => {
    const name = text.trim();
    if (!name) return;
    try {
      const found = await apiGet("trace", {}, { of: name });
      navigate(found.task ? ["jobs", found.job, "tasks", found.task] : ["jobs", found.job]);
    } catch (error) {
      const jobs = await apiGet("jobs", {}, { text: name, limit: 2 }).catch(() => undefined); // a master has none
      const first = jobs?.jobs[0];
      if (!first) void message.info((error as Error).message, 6);
      else if (jobs.total === 1) navigate(["jobs", first.id]);
      else navigate(["jobs"], { text: name });
    }
  };
  return (
    <Input.Search
      size="small"
      allowClear
      aria-label={t("Find a job by name, id, container, host:pid, host/gpu0")}
      placeholder={t("Find a job by name, id, container, host:pid, host/gpu0")}
      onSearch={(text) => void find(text)}
      className="job-finder"
    />
  );
}
