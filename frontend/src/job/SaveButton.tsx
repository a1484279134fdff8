// Save Model: a copy of the outputs as they are now, and the list of those that were made.

import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job, Save } from "../api";
import { bytes, time } from "../format";
import { say } from "../language";
import { retold } from "../retold";
import { StateTag } from "../shell/StateTag";
import { useAction } from "./action";
import { hasEnded } from "./jobState";

export function SaveButton({ job, may }: { job: Job; may: boolean }): ReactNode {
  const [open, setOpen] = useState(false);
  const { busy, run } = useAction(job.id, "save", say("The model is being saved"));
  const saving = job.saves.find((save) => save.state === "RUNNING");
  const label = saving ? say("Saving {done}/{tasks}", { done: saving.done, tasks: saving.tasks }) : say("Save Model");
  const possible = may && job.can.save && !saving;
  return (
    <>
      {!hasEnded(job) && Object.keys(job.can).length > 0 && (
        <Button
          type="primary"
          disabled={!possible}
          loading={busy}
          aria-describedby="how-to-act"
          title={job.can.save ? undefined : say("The job has no output that can be saved while it runs.")}
          onClick={() => void run({ output: -1 })}
        >
          {label}
        </Button>
      )}
      {job.saves.length > 0 && (
        <Button onClick={() => setOpen(true)}>{say("Saved models ({count})", { count: job.saves.length })}</Button>
      )}
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={say("Saved models")}
        width={900}
        destroyOnHidden
      >
        <SaveList saves={job.saves} />
      </Modal>
    </>
  );
}

function SaveList({ saves }: { saves: Save[] }): ReactNode {
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{say("Number")}</th>
          <th scope="col">{say("State")}</th>
          <th scope="col">{say("Started")}</th>
          <th scope="col">{say("By")}</th>
          <th scope="col">{say("Size")}</th>
          <th scope="col">{say("Where")}</th>
        </tr>
      </thead>
      <tbody>
        {[...saves].reverse().map((save) => (
          <tr key={save.number}>
            <td>{save.number}</td>
            <td>
              <StateTag state={save.state} /> {save.state === "RUNNING" && `${save.done}/${save.tasks}`}
            </td>
            <td>{time(save.started)}</td>
            <td>{save.by}</td>
            <td>{save.files > 0 && say("{files} files, {size}", { files: save.files, size: bytes(save.bytes) })}</td>
            <td className="mono">
              {save.uri} {save.removed && say("(removed: it had its time)")}
              {save.reason && <div className="bad">{retold(save.reason)}</div>}
              {save.skipped.length > 0 && (
                <div className="muted">{say("left out: {files}", { files: save.skipped.join(", ") })}</div>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
