import { Button, message } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { useJobAction } from "./useJobAction";

/** Starts and stops TensorBoard for the job. While it runs, the job has a link to it. If TensorBoard ends before it
 * answers, a message says why. */
export function TensorBoardButton({ job, permitted }: { job: Job; permitted: boolean }): ReactNode {
  const start = useJobAction(job.id, "tensorboard", t("TensorBoard is starting; its link will appear here"));
  const stop = useJobAction(job.id, "tensorboard/stop", t("TensorBoard was stopped"));
  const running = job.links.some((link) => link.kind === "tensorboard");
  const ended = job.tensorboard_ended;
  /** When TensorBoard had ended last as it was started here; null while none is being started here. */
  const [endedBefore, setEndedBefore] = useState<number | null>(null);
  const failed = endedBefore !== null && ended && ended.time > endedBefore ? ended.text : "";
  useEffect(() => {
    if (failed) void message.error(failed, 15);
    if (failed || running) setEndedBefore(null);
  }, [failed, running]);
  const startOrStop = async (): Promise<void> => {
    if (running) await stop.run();
    else if (await start.run()) setEndedBefore(ended?.time ?? 0);
  };
  if (!job.can.tensorboard) return null;
  return (
    <Button
      disabled={!permitted}
      loading={start.pending || stop.pending || endedBefore !== null}
      aria-describedby="how-to-act"
      onClick={() => void startOrStop()}
    >
      {running ? t("Stop TensorBoard") : t("Start TensorBoard")}
    </Button>
  );
}
