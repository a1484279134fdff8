// What was recorded when the job was submitted: where it came from, and the packages of its environment.

import { Input } from "antd";
import { type ReactNode, useState } from "react";
import type { Job } from "../api";
import { DescriptionList } from "../components/DescriptionList";
import { formatTime, toPlainText } from "../format";
import { t } from "../language";

export function SubmissionCard({ job }: { job: Job }): ReactNode {
  const { captured } = job;
  const dirty = captured.git_dirty ? ` ${t("(with uncommitted changes)")}` : "";
  return (
    <section className="card">
      <h2>{t("Submission")}</h2>
      <DescriptionList
        items={[
          [t("Submitted"), captured.submitted_at ? formatTime(captured.submitted_at) : ""],
          [t("Git commit"), captured.git_commit ? captured.git_commit + dirty : ""],
          [t("Command"), captured.command.join(" ")],
          [t("Client"), captured.client ? toPlainText(captured.client) : ""],
        ]}
      />
    </section>
  );
}

export function PackageList({ job }: { job: Job }): ReactNode {
  const [search, setSearch] = useState("");
  const packages = Object.entries(job.captured.packages);
  const visible = packages.filter(([name]) => name.toLowerCase().includes(search.toLowerCase()));
  return (
    <div className="place">
      <h3>{t("Packages ({count})", { count: packages.length })}</h3>
      {packages.length > 0 ? (
        <>
          <Input
            size="small"
            aria-label={t("Search packages")}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
          <div className="scroll" tabIndex={0} role="group" aria-label={t("Packages")} style={{ maxHeight: 300, marginTop: 6 }}>
            <DescriptionList items={visible} />
          </div>
        </>
      ) : (
        <p className="muted note">
          {t("None were recorded: packages are those of a requirements file, a conda environment or a Python of the submitter's machine.")}
        </p>
      )}
    </div>
  );
}
