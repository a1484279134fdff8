// From a container, a pod, host:pid or a GPU back to its job.

import { Input, message } from "antd";
import type { ReactNode } from "react";
import { get } from "../client";
import { say } from "../language";
import { go } from "../route";

export function TraceBox(): ReactNode {
  const find = async (text: string): Promise<void> => {
    const of = text.trim();
    if (!of) return;
    try {
      const found = await get("trace", {}, { of });
      go(found.task ? ["jobs", found.job, "tasks", found.task] : ["jobs", found.job]);
    } catch (error) {
      void message.info((error as Error).message, 6);
    }
  };
  return (
    <Input.Search
      size="small"
      allowClear
      aria-label={say("Whose is it? container, host:pid, host/gpu0")}
      placeholder={say("Whose is it? container, host:pid, host/gpu0")}
      onSearch={(text) => void find(text)}
      className="trace"
    />
  );
}
