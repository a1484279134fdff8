// The job's spec as resolved and as submitted, and the environment of the submission.

import { Input, Segmented } from "antd";
import { type ReactNode, useState } from "react";
import type { CapturedEnvironment, Job } from "../api";
import { CopyableText } from "../components/CopyableText";
import { DescriptionList } from "../components/DescriptionList";
import { EmptyState } from "../components/EmptyState";
import { toPlainText, formatTime } from "../format";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { toYaml } from "./toYaml";

const TEXT_HEIGHT = "calc(100vh - 320px)";

export default function SpecTab({ job }: { job: Job }): ReactNode {
  const kind = useRoute().query.get("kind") ?? "resolved";
  const submitted = job.submitted?.yaml ?? "";
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={t("Version of the spec")}
          value={kind}
          onChange={(value) => updateQuery({ kind: value })}
          options={[
            { value: "resolved", label: t("As resolved") },
            { value: "submitted", label: t("As submitted") },
            { value: "captured", label: t("Environment") },
          ]}
        />
        {kind === "submitted" && <span className="muted mono">{job.submitted?.file}</span>}
      </div>
      {kind === "resolved" && <CopyableText text={toYaml(job.resolved)} maxHeight={TEXT_HEIGHT} />}
      {kind === "submitted" &&
        (submitted ? (
          <>
            <DescriptionList items={Object.entries(job.submitted.overrides ?? {})} />
            <CopyableText text={submitted} maxHeight={TEXT_HEIGHT} />
          </>
        ) : (
          <EmptyState text={t("The submitted job file was not kept.")} />
        ))}
      {kind === "captured" && <SubmissionEnvironment captured={job.captured} />}
    </>
  );
}

function SubmissionEnvironment({ captured }: { captured: CapturedEnvironment | null }): ReactNode {
  const [search, setSearch] = useState("");
  if (!captured) return <EmptyState text={t("The environment of the submission was not recorded.")} />;
  const packages = Object.entries(captured.packages ?? {});
  const visiblePackages = packages.filter(([name]) => name.toLowerCase().includes(search.toLowerCase()));
  const dirty = captured.git_dirty ? ` ${t("(with uncommitted changes)")}` : "";
  return (
    <div className="cards">
      <section className="card">
        <h2>{t("Environment")}</h2>
        <DescriptionList
          items={[
            [t("Submitted"), captured.submitted_at ? formatTime(captured.submitted_at) : ""],
            [t("Git commit"), captured.git_commit ? captured.git_commit + dirty : ""],
            [t("Command"), (captured.command ?? []).join(" ")],
            [t("Client"), captured.client ? toPlainText(captured.client) : ""],
          ]}
        />
      </section>
      <section className="card">
        <h2>{t("Variables")}</h2>
        <DescriptionList items={Object.entries(captured.variables ?? {})} />
      </section>
      <section className="card">
        <h2>{t("Packages ({count})", { count: packages.length })}</h2>
        <Input
          size="small"
          aria-label={t("Search packages")}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <div className="scroll" tabIndex={0} style={{ maxHeight: 400, marginTop: 6 }}>
          <DescriptionList items={visiblePackages} />
        </div>
      </section>
    </div>
  );
}
