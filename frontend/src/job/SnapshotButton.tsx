// Takes a snapshot of the outputs as they are now; a dialog lists the snapshots.

import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job, Snapshot } from "../api";
import { StateTag } from "../components/StateTag";
import { formatBytes, formatTime } from "../format";
import { t } from "../language";
import { hasEnded } from "./jobState";
import { useJobAction } from "./useJobAction";

export function SnapshotButton({ job, permitted }: { job: Job; permitted: boolean }): ReactNode {
  const [open, setOpen] = useState(false);
  const { pending, run } = useJobAction(job.id, "save", t("A snapshot is being taken"));
  const saving = job.saves.find((save) => save.state === "RUNNING");
  const label = saving ? t("Snapshot {done}/{tasks}", { done: saving.done, tasks: saving.tasks }) : t("Take snapshot");
  const possible = permitted && job.can.save && !saving;
  return (
    <>
      {!hasEnded(job) && "save" in job.can && (
        <Button
          type="primary"
          disabled={!possible}
          loading={pending}
          aria-describedby="how-to-act"
          title={job.can.save ? undefined : t("The job has no output of which a snapshot can be taken while it runs.")}
          onClick={() => void run({ output: -1 })}
        >
          {label}
        </Button>
      )}
      {job.saves.length > 0 && (
        <Button onClick={() => setOpen(true)}>{t("Snapshots ({count})", { count: job.saves.length })}</Button>
      )}
      <Modal
        open={open}
        onCancel={() => setOpen(false)}
        footer={null}
        title={t("Snapshots")}
        width={900}
        destroyOnHidden
      >
        <SnapshotTable saves={job.saves} />
      </Modal>
    </>
  );
}

function SnapshotTable({ saves }: { saves: Snapshot[] }): ReactNode {
  return (
    <table className="small">
      <thead>
        <tr>
          <th scope="col">{t("Number")}</th>
          <th scope="col">{t("State")}</th>
          <th scope="col">{t("Started")}</th>
          <th scope="col">{t("Requested by")}</th>
          <th scope="col">{t("Size")}</th>
          <th scope="col">{t("Location")}</th>
        </tr>
      </thead>
      <tbody>
        {[...saves].reverse().map((save) => (
          <tr key={save.number}>
            <td>{save.number}</td>
            <td>
              <StateTag state={save.state} /> {save.state === "RUNNING" && `${save.done}/${save.tasks}`}
            </td>
            <td>{formatTime(save.started)}</td>
            <td>{save.by}</td>
            <td>
              {save.files > 0 && t("{files} files, {size}", { files: save.files, size: formatBytes(save.bytes) })}
            </td>
            <td className="mono">
              {save.uri} {save.removed && t("(removed after its retention time)")}
              {save.reason && <div className="bad">{save.reason}</div>}
              {save.skipped.length > 0 && (
                <div className="muted">{t("not included: {files}", { files: save.skipped.join(", ") })}</div>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
