import { Button, message } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { storedText, translateStored } from "../translateStored";
import { useJobAction } from "./useJobAction";

const ENDED_NOTE = "TensorBoard has ended";

/** Starts and stops TensorBoard for the job. While it runs, the job has a link to it. If TensorBoard ends before it
 * answers, a note of the job says why, and a message repeats that note. */
export function TensorBoardButton({ job, permitted }: { job: Job; permitted: boolean }): ReactNode {
  const start = useJobAction(job.id, "tensorboard", t("TensorBoard is starting; its link will appear here"));
  const stop = useJobAction(job.id, "tensorboard/stop", t("TensorBoard was stopped"));
  const running = job.links.some((link) => link.kind === "tensorboard");
  const endNotes = job.notes.filter((note) => storedText(note.text).startsWith(ENDED_NOTE));
  const [endNotesAtStart, setEndNotesAtStart] = useState<number | null>(null);
  const lastEndNote = endNotes.at(-1);
  const failed =
    endNotesAtStart !== null && endNotes.length > endNotesAtStart && lastEndNote
      ? translateStored(lastEndNote.text)
      : "";
  useEffect(() => {
    if (failed) void message.error(failed, 15);
    if (failed || running) setEndNotesAtStart(null);
  }, [failed, running]);
  const startOrStop = async (): Promise<void> => {
    if (running) await stop.run();
    else if (await start.run()) setEndNotesAtStart(endNotes.length);
  };
  if (!job.can.tensorboard) return null;
  return (
    <Button
      disabled={!permitted}
      loading={start.pending || stop.pending || endNotesAtStart !== null}
      aria-describedby="how-to-act"
      onClick={() => void startOrStop()}
    >
      {running ? t("Stop TensorBoard") : t("Start TensorBoard")}
    </Button>
  );
}
