import { Button, message } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import type { Job } from "../api";
import { say } from "../language";
import { english, retold } from "../retold";
import { useAction } from "./action";

const ENDED = "TensorBoard has ended";

/** Starts TensorBoard for the job; once it runs it is among the job's links, and can be stopped. It may also end before
 * it is open: a note says why, and so do we. */
export function TensorBoardButton({ job, may }: { job: Job; may: boolean }): ReactNode {
  const start = useAction(
    job.id,
    "tensorboard",
    say("TensorBoard is being started; its link comes here"),
  );
  const stop = useAction(job.id, "tensorboard/stop", say("TensorBoard is stopped"));
  const runs = job.links.some((link) => link.kind === "tensorboard");
  const ends = job.notes.filter((note) => english(note.text).startsWith(ENDED));
  const [awaited, setAwaited] = useState<number | null>(null);
  const last = ends.at(-1);
  const failed = awaited !== null && ends.length > awaited && last ? retold(last.text) : "";
  useEffect(() => {
    if (failed) void message.error(failed, 15);
    if (failed || runs) setAwaited(null);
  }, [failed, runs]);
  const press = async (): Promise<void> => {
    if (runs) await stop.run();
    else if (await start.run()) setAwaited(ends.length);
  };
  if (!job.can.tensorboard) return null;
  return (
    <Button
      disabled={!may}
      loading={start.busy || stop.busy || awaited !== null}
      aria-describedby="how-to-act"
      onClick={() => void press()}
    >
      {runs ? say("Stop TensorBoard") : say("Start TensorBoard")}
    </Button>
  );
}
