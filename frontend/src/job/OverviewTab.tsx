// The overview: the outcome or what the job waits for, key figures, what its programs do now, its definition, details.

import { lazy, type ReactNode, Suspense } from "react";
import type { Job, ServerInfo } from "../api";
import { ErrorBoundary } from "../components/ErrorBoundary";
import { t } from "../language";
import { DefinitionCards } from "../overview/DefinitionCards";
import { DetailCards } from "../overview/DetailCards";
import { KeyFigures } from "../overview/KeyFigures";
import { RoleTable } from "../overview/RoleTable";
import { WaitCard } from "../overview/WaitCard";
import { FailureCard } from "./FailureCard";

export const loadActivityCards = (): Promise<typeof import("../overview/ActivityCards")> =>
  import("../overview/ActivityCards");
const ActivityCards = lazy(loadActivityCards);
const HistoryCards = lazy(() => import("../overview/HistoryCards"));

export function OverviewTab({ job, server }: { job: Job; server: ServerInfo | undefined }): ReactNode {
  const canSearch = server?.kind === "history";
  const hasRun = job.running > 0;
  return (
    <div className={`dashboard ${hasRun ? "" : "not-run"}`}>
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
        {hasRun && (
          <ErrorBoundary resetKey={job.id}>
            <Suspense fallback={<section className="card" style={{ minHeight: 420 }} />}>
              <ActivityCards job={job} />
            </Suspense>
          </ErrorBoundary>
        )}
      </div>
      <div className="definition">
        <DefinitionCards job={job} />
      </div>
      <div className="details">
        {canSearch && server && (
          <ErrorBoundary resetKey={job.id}>
            <Suspense fallback={null}>
              <HistoryCards key={job.id} job={job} currency={server.currency} />
            </Suspense>
          </ErrorBoundary>
        )}
        <DetailCards job={job} canSearch={canSearch} />
      </div>
    </div>
  );
}
