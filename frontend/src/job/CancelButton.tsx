import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { useJobAction } from "./useJobAction";

/** Ends the job, after a question. */
export function CancelButton({ job, permitted }: { job: Job; permitted: boolean }): ReactNode {
  const [confirming, setConfirming] = useState(false);
  const { pending, run } = useJobAction(job.id, "cancel", t("The job is being ended"));
  const cancel = async (): Promise<void> => {
    await run();
    setConfirming(false);
  };
  return (
    <>
      <Button danger disabled={!permitted} aria-describedby="how-to-act" onClick={() => setConfirming(true)}>
        {t("Cancel job…")}
      </Button>
      <Modal
        open={confirming}
        title={t("End {name}?", { name: job.name || job.id })}
        okText={t("End the job")}
        cancelText={t("Let it run")}
        okButtonProps={{ danger: true, loading: pending }}
        onOk={() => void cancel()}
        onCancel={() => setConfirming(false)}
        destroyOnHidden
      >
        {t("All its tasks are stopped. This cannot be undone.")}
      </Modal>
    </>
  );
}
