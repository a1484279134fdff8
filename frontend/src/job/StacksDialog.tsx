// Where a task's program is just now: the stacks of its threads.

import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { ActionAnswer, Job, Task } from "../api";
import { say } from "../language";
import { copy } from "../shell/clipboard";
import { actToken } from "../tokens";
import { useAction } from "./action";

export function StacksButton({ job, task }: { job: Job; task: Task }): ReactNode {
  const { busy, run } = useAction(job.id, "stacks", "");
  const [taken, setTaken] = useState<ActionAnswer<"stacks">>();
  const [open, setOpen] = useState(false);
  const take = async (): Promise<void> => {
    const answer = await run({ task: task.task });
    if (!answer) return;
    setTaken(answer);
    setOpen(true);
  };
  return (
    <>
      <Button
        size="small"
        style={{ marginTop: 8 }}
        disabled={!actToken()}
        aria-describedby="how-to-act"
        loading={busy}
        onClick={() => void take()}
      >
        {say("Show stack traces")}
      </Button>
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={say("Stack traces of {task}", { task: task.task })}
        width={900}
        destroyOnHidden
      >
        {taken && <Stacks text={taken.stacks[task.task] ?? ""} kept={taken.uri} problem={taken.problem} />}
      </Modal>
    </>
  );
}

function Stacks({ text, kept, problem }: { text: string; kept: string; problem: string }): ReactNode {
  return (
    <>
      <pre className="text" tabIndex={0} style={{ maxHeight: "60vh" }}>
        {text}
      </pre>
      <div className="row" style={{ marginTop: 8 }}>
        <Button size="small" onClick={() => void copy(text)}>
          {say("Copy")}
        </Button>
        {kept && <span className="muted mono">{kept}</span>}
        {problem && <span className="bad">{say("They could not be kept: {problem}", { problem })}</span>}
      </div>
    </>
  );
}
