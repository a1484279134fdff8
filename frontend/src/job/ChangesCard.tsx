// What differs between the job and the last run of its name, which the history knows.

import type { ReactNode } from "react";
import type { Job, ServerInfo, SpecDifference } from "../api";
import { formatDateTime, toPlainText } from "../format";
import { t } from "../language";
import { href } from "../router";
import { usePolling } from "../usePolling";

export function ChangesCard({ job, server }: { job: Job; server: ServerInfo | undefined }): ReactNode {
  if (server?.kind !== "history" && !server?.history) return null;
  return (
    <section className="card" style={{ flexBasis: "100%" }}>
      <h2>{t("Changed since the last run of this name")}</h2>
      {server.kind === "history" ? (
        <Changes job={job} />
      ) : (
        <a href={server.history + href(["compare"], { jobs: job.id })}>{t("Compare with the last run, in the history")}</a>
      )}
    </section>
  );
}

function Changes({ job }: { job: Job }): ReactNode {
  const { data, error } = usePolling("compare", {}, { jobs: job.id }, 0);
  const earlier = data?.jobs[0];
  if (!data || !earlier) return <p className="muted note">{error?.message ?? t("Loading…")}</p>;
  const differences = [...data.spec, ...data.captured];
  return (
    <>
      <p className="note">
        {t("The last run:")} <a href={href(["jobs", earlier.id])}>{earlier.id}</a> {formatDateTime(earlier.started)} ·{" "}
        <a href={href(["compare"], { jobs: `${earlier.id},${job.id}` })}>{t("Compare outcome and metrics")}</a>
      </p>
      {differences.length ? (
        <DifferenceTable differences={differences} />
      ) : (
        <p className="muted note">{t("Nothing: spec, commit, packages and command are the same.")}</p>
      )}
    </>
  );
}

function DifferenceTable({ differences }: { differences: SpecDifference[] }): ReactNode {
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={t("Changed since the last run of this name")}>
      <table className="small changes">
        <thead>
          <tr>
            <th scope="col">{t("Field")}</th>
            <th scope="col">{t("The last run")}</th>
            <th scope="col">{t("This run")}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ path, a, b }) => (
            <tr key={path}>
              <th scope="row">{path}</th>
              <td>{describe(a)}</td>
              <td>{describe(b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value that is missing, or is the default, is null. */
function describe(value: unknown): string {
  if (value === null) return "–";
  return Array.isArray(value) && value.every((each) => typeof each === "string") ? value.join(" ") : toPlainText(value);
}
