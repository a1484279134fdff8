// Shows how to submit the job again: the command, and the job file as it was submitted.

import { Button, Modal } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { CopyableText } from "../components/CopyableText";
import { DescriptionList } from "../components/DescriptionList";
import { t } from "../language";

/** A page cannot submit: it has neither the files of the job nor the user's credentials. */
export function RunAgainButton({ job }: { job: Job }): ReactNode {
  const [open, setOpen] = useState(false);
  const yaml = job.submitted?.yaml;
  if (!yaml) return null;
  const overrides = Object.entries(job.submitted.overrides ?? {});
  const variable = overrides.map(([name]) => name).find((name) => !name.startsWith("--")) ?? "NAME";
  const command = `howdah submit --like ${job.id}`;
  return (
    <>
      <Button onClick={() => setOpen(true)}>{t("Run again…")}</Button>
      <Modal
        open={open}
        title={t("Run {name} again", { name: job.name || job.id })}
        footer={null}
        width={760}
        onCancel={() => setOpen(false)}
        destroyOnHidden
      >
        <p>{t("Where you submit jobs, this command submits the same job again, with the files as they are now:")}</p>
        <CopyableText text={command} />
        <p>{t("Another value, for example:")}</p>
        <CopyableText text={`${command} --set ${variable}=VALUE`} />
        {overrides.length > 0 && (
          <>
            <h3>{t("Values over those of the job file")}</h3>
            <DescriptionList items={overrides} />
          </>
        )}
        <h3>{t("The job file as submitted")}</h3>
        <CopyableText text={yaml} maxHeight="40vh" />
      </Modal>
    </>
  );
}
