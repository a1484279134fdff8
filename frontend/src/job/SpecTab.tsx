// The job's spec: as cards, and as resolved and as submitted, both as job files.

import { Segmented } from "antd";
import type { ReactNode } from "react";
import type { Job, ServerInfo } from "../api";
import { CopyableText } from "../components/CopyableText";
import { DescriptionList } from "../components/DescriptionList";
import { EmptyState } from "../components/EmptyState";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import { ChangesCard } from "./ChangesCard";
import { SpecCards } from "./SpecCards";
import { toYaml } from "./toYaml";

const TEXT_HEIGHT = "calc(100vh - 320px)";

export default function SpecTab({ job, server }: { job: Job; server: ServerInfo | undefined }): ReactNode {
  const kind = useRoute().query.get("kind") ?? "summary";
  const submitted = job.submitted?.yaml ?? "";
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={t("Version of the spec")}
          value={kind}
          onChange={(value) => updateQuery({ kind: value })}
          options={[
            { value: "summary", label: t("Summary") },
            { value: "resolved", label: t("As resolved") },
            { value: "submitted", label: t("As submitted") },
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
      {kind === "summary" && (
        <SpecCards job={job}>
          <ChangesCard job={job} server={server} />
        </SpecCards>
      )}
    </>
  );
}
