import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { useJobAction } from "./useJobAction";

/** Cancels the job after a confirmation. */
export function CancelButton({ job, permitted }: { job: Job; permitted: boolean }): ReactNode {
  const [confirming, setConfirming] = useState(false);
  const { pending, run } = useJobAction(job.id, "cancel", t("The job is being cancelled"));
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
        title={t("Cancel {name}?", { name: job.name || job.id })}
        okText={t("Cancel the job")}
        cancelText={t("Keep it running")}
        okButtonProps={{ danger: true, loading: pending }}
        onOk={() => void cancel()}
        onCancel={() => setConfirming(false)}
        destroyOnHidden
      >
        {t("All tasks of the job will be stopped. This cannot be undone.")}
      </Modal>
    </>
  );
}
