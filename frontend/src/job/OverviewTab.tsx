// The overview: the outcome or what the job waits for, key figures, its definition, details.

import type { ReactNode } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { DefinitionCards } from "../overview/DefinitionCards";
import { DetailCards } from "../overview/DetailCards";
import { KeyFigures } from "../overview/KeyFigures";
import { RoleTable } from "../overview/RoleTable";
import { WaitCard } from "../overview/WaitCard";
import { FailureCard } from "./FailureCard";

/** `canSearch`: whether the server lists jobs. */
export function OverviewTab({ job, canSearch }: { job: Job; canSearch: boolean }): ReactNode {
  return (
    <div className="dashboard not-run">
      <div className="summary">
        <WaitCard job={job} />
        <FailureCard job={job} />
        <KeyFigures job={job} />
      </div>
      <div className="activity">
        <section className="card">
          <h2>{t("Roles")}</h2>
          <RoleTable job={job} />
        </section>
      </div>
      <div className="definition">
        <DefinitionCards job={job} />
      </div>
      <div className="details">
        <DetailCards job={job} canSearch={canSearch} />
      </div>
    </div>
  );
}
