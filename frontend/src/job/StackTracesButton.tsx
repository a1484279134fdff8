// Shows the stack traces of a running task's threads.

import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { ActionResponse, Job, Task } from "../api";
import { copyToClipboard } from "../components/clipboard";
import { t } from "../language";
import { getActionToken } from "../tokens";
import { useJobAction } from "./useJobAction";

export function StackTracesButton({ job, task }: { job: Job; task: Pick<Task, "task"> }): ReactNode {
  const { pending, run } = useJobAction(job.id, "stacks", "");
  const [result, setResult] = useState<ActionResponse<"stacks">>();
  const [open, setOpen] = useState(false);
  const showStackTraces = async (): Promise<void> => {
    const answer = await run({ task: task.task });
    if (!answer) return;
    setResult(answer);
    setOpen(true);
  };
  return (
    <>
      <Button
        size="small"
        style={{ marginTop: 8 }}
        disabled={!getActionToken()}
        aria-describedby="how-to-act"
        loading={pending}
        onClick={() => void showStackTraces()}
      >
        {t("Show stack traces")}
      </Button>
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={t("Stack traces of {task}", { task: task.task })}
        width={900}
        destroyOnHidden
      >
        {result && <StackTraces text={result.stacks[task.task] ?? ""} uri={result.uri} problem={result.problem} />}
      </Modal>
    </>
  );
}

function StackTraces({ text, uri, problem }: { text: string; uri: string; problem: string }): ReactNode {
  return (
    <>
      <pre className="text" tabIndex={0} style={{ maxHeight: "60vh" }}>
        {text}
      </pre>
      <div className="row" style={{ marginTop: 8 }}>
        <Button size="small" onClick={() => void copyToClipboard(text)}>
          {t("Copy")}
        </Button>
        {uri && <span className="muted mono">{uri}</span>}
        {problem && <span className="bad">{t("The stack traces could not be stored: {problem}", { problem })}</span>}
      </div>
    </>
  );
}
