import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { say } from "../language";
import { useAction } from "./action";

/** Ends the job, after a question. */
export function CancelButton({ job, may }: { job: Job; may: boolean }): ReactNode {
  const [asked, setAsked] = useState(false);
  const { busy, run } = useAction(job.id, "cancel", say("The job is being ended"));
  const end = async (): Promise<void> => {
    await run();
    setAsked(false);
  };
  return (
    <>
      <Button danger disabled={!may} aria-describedby="how-to-act" onClick={() => setAsked(true)}>
        {say("Cancel job…")}
      </Button>
      <Modal
        open={asked}
        title={say("End {name}?", { name: job.name || job.id })}
        okText={say("End the job")}
        cancelText={say("Let it run")}
        okButtonProps={{ danger: true, loading: busy }}
        onOk={() => void end()}
        onCancel={() => setAsked(false)}
        destroyOnHidden
      >
        {say("All its tasks are stopped. This cannot be undone.")}
      </Modal>
    </>
  );
}
