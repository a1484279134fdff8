// Shows the stack traces of the threads of one running task, or of all: tasks with equal ones share a card.

import { Button, message, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { ActionResponse, Job } from "../api";
import { apiGet } from "../apiClient";
import { copyToClipboard } from "../components/clipboard";
import { t } from "../language";
import { getActionToken } from "../tokens";
import { groupStacks, type StackGroup } from "./groupStacks";
import { compactTaskNames } from "./taskNames";
import { useJobAction } from "./useJobAction";

type Result = ActionResponse<"stacks"> & { more?: boolean };

/** Without `task`, the stack traces of all tasks are shown. */
export function StackTracesButton({ job, task = "" }: { job: Job; task?: string }): ReactNode {
  const { pending, run } = useJobAction(job.id, "stacks", "");
  const [result, setResult] = useState<Result>();
  const [open, setOpen] = useState(false);
  const showStackTraces = async (): Promise<void> => {
    const answer = await run({ task });
    if (!answer) return;
    setResult(answer);
    setOpen(true);
  };
  return (
    <>
      <Button
        size="small"
        disabled={!getActionToken()}
        aria-describedby="how-to-act"
        loading={pending}
        onClick={() => void showStackTraces()}
      >
        {task ? t("Show stack traces") : t("Show all stack traces")}
      </Button>
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={task ? t("Stack traces of {task}", { task }) : t("Stack traces of all tasks")}
        width={task ? 900 : "95vw"}
        destroyOnHidden
      >
        {result && (task ? <TaskStack result={result} text={result.stacks[task] ?? ""} /> : <AllStacks result={result} />)}
      </Modal>
    </>
  );
}

/** Shows the stack traces that were kept last, of a job that may have ended. */
export function KeptStacksButton({ job }: { job: Job }): ReactNode {
  const [pending, setPending] = useState(false);
  const [result, setResult] = useState<Result>();
  const [open, setOpen] = useState(false);
  const show = async (): Promise<void> => {
    setPending(true);
    try {
      const { stacks, uri, complete } = await apiGet("jobs/{job}/stacks", { job: job.id });
      setResult({ stacks, uri, problem: "", more: !complete });
      setOpen(true);
    } catch (error) {
      void message.error((error as Error).message, 8);
    } finally {
      setPending(false);
    }
  };
  return (
    <>
      <Button size="small" loading={pending} onClick={() => void show()}>
        {t("Show stack traces")}
      </Button>
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={t("Stack traces that were kept last")}
        width="95vw"
        destroyOnHidden
      >
        {result && <AllStacks result={result} />}
      </Modal>
    </>
  );
}

function TaskStack({ result, text }: { result: Result; text: string }): ReactNode {
  return (
    <>
      <pre className="text" tabIndex={0} style={{ maxHeight: "60vh" }}>
        {text}
      </pre>
      <Storage result={result} text={text} />
    </>
  );
}

function AllStacks({ result }: { result: Result }): ReactNode {
  const groups = groupStacks(result.stacks);
  const all = Object.entries(result.stacks).map(([task, text]) => `==> ${task} <==\n${text}`);
  return (
    <>
      <div className="cards scroll" style={{ maxHeight: "70vh" }}>
        {groups.map((group) => (
          <StackCard key={group.tasks[0]} group={group} />
        ))}
      </div>
      <Storage result={result} text={all.join("\n")} />
    </>
  );
}

function StackCard({ group: { tasks, text } }: { group: StackGroup }): ReactNode {
  const names = compactTaskNames(tasks);
  return (
    <section className="card" aria-label={names}>
      <h2>
        {names} <span className="muted">{tasks.length > 1 && t("{count} tasks", { count: tasks.length })}</span>
      </h2>
      <pre className="text" tabIndex={0} style={{ maxHeight: "45vh" }}>
        {text}
      </pre>
    </section>
  );
}

function Storage({ result: { uri, problem, more }, text }: { result: Result; text: string }): ReactNode {
  return (
    <div className="row" style={{ marginTop: 8 }}>
      <Button size="small" onClick={() => void copyToClipboard(text)}>
        {t("Copy")}
      </Button>
      {uri && <span className="muted mono">{uri}</span>}
      {more && <span className="muted">{t("there are more")}</span>}
      {problem && <span className="bad">{t("The stack traces could not be stored: {problem}", { problem })}</span>}
    </div>
  );
}
