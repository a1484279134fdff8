// Compares jobs: outcome, metrics, hyperparameters, spec and environment row by row, and their training curves.

import { Button, Input } from "antd";
import { Fragment, lazy, type ReactNode, useState } from "react";
import type { ApiResponse, JobRow, ServerInfo } from "../api";
import { EmptyState } from "../components/EmptyState";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { t } from "../language";
import { href, navigate, updateQuery, useRoute } from "../router";
import { usePolling } from "../usePolling";
import { type CompareRow, comparisonParts } from "./comparisonRows";

const ScalarCharts = lazy(() =>
  import("../trainingCurves/ScalarCharts").then((module) => ({ default: module.ScalarCharts })),
);

/** The least widths of a comparison's columns: narrower windows scroll it. */
const FIELD_PX = 120;
const JOB_PX = 180;

export default function ComparePage({ server }: { server: ServerInfo }): ReactNode {
  const { query } = useRoute();
  const ids = toIds(query.get("jobs") ?? `${query.get("a") ?? ""},${query.get("b") ?? ""}`);
  const [first] = ids;
  const text = ids.join(", ");
  return (
    <>
      <h1 className="visually-hidden">{t("Compare")}</h1>
      <JobsForm key={text} text={text} />
      {first && <Comparison ids={ids} />}
      {first && ids.length > 1 && server.kind === "history" && <ScalarComparison jobId={first} />}
    </>
  );
}

function toIds(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

function JobsForm({ text }: { text: string }): ReactNode {
  const [typed, setTyped] = useState(text);
  const ids = toIds(typed);
  return (
    <form
      className="row"
      style={{ marginBottom: 10 }}
      onSubmit={(event) => {
        event.preventDefault();
        navigate(["compare"], { jobs: ids.join(",") });
      }}
    >
      <Input
        aria-label={t("Ids of 2 to 10 jobs")}
        placeholder={t("Ids of 2 to 10 jobs")}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        style={{ flex: "1 1 290px", maxWidth: 900 }}
      />
      <Button type="primary" htmlType="submit" disabled={ids.length < 2}>
        {t("Compare")}
      </Button>
    </form>
  );
}

function Comparison({ ids }: { ids: string[] }): ReactNode {
  const polled = usePolling("compare", {}, { jobs: ids.join(","), equal: 1 }, 0);
  const comparison = polled.data;
  if (!comparison) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  return <ComparisonTable comparison={comparison} />;
}

function ComparisonTable({ comparison }: { comparison: ApiResponse<"compare"> }): ReactNode {
  const withEqual = useRoute().query.get("equal") === "1";
  const { jobs } = comparison;
  const parts = comparisonParts(comparison);
  return (
    <section className="card" style={{ marginBottom: 12 }}>
      <div className="row">
        <LabeledSwitch
          text={t("Only differences")}
          on={!withEqual}
          onChange={(on) => updateQuery({ equal: on ? "" : 1 })}
        />
      </div>
      <div className="scroll" tabIndex={0} role="group" aria-label={t("Compare")}>
        <table className="small compare-table" style={{ minWidth: FIELD_PX + jobs.length * JOB_PX }}>
          <thead>
            <tr>
              <th scope="col">{t("Field")}</th>
              {jobs.map((job) => (
                <th key={job.id} scope="col">
                  <JobHeading job={job} />
                </th>
              ))}
            </tr>
          </thead>
          {parts.map(({ title, rows }) => (
            <Part key={title} title={title} rows={withEqual ? rows : rows.filter((row) => row.differs)} jobs={jobs} />
          ))}
        </table>
      </div>
    </section>
  );
}

/** Lets a path such as `roles.worker.command` go on in the next line where a name ends. */
function breakAfterDots(label: string): ReactNode {
  return label.split(/(?<=[._])/).map((part, index) => (
    <Fragment key={`${index} ${part}`}>
      {part}
      <wbr />
    </Fragment>
  ));
}

function JobHeading({ job }: { job: JobRow }): ReactNode {
  return (
    <>
      <a href={href(["jobs", job.id])}>{job.name}</a>
      <br />
      <span className="mono">{job.id}</span>
    </>
  );
}

function Part({ title, rows, jobs }: { title: string; rows: CompareRow[]; jobs: JobRow[] }): ReactNode {
  if (!rows.length) return null;
  return (
    <tbody>
      <tr className="part">
        <th scope="rowgroup" colSpan={jobs.length + 1}>
          {title}
        </th>
      </tr>
      {rows.map((row) => (
        <tr key={row.label} className={row.differs ? "differs" : ""}>
          <th scope="row">{breakAfterDots(row.label)}</th>
          {jobs.map((job, index) => (
            <td key={job.id}>{row.values[index]}</td>
          ))}
        </tr>
      ))}
    </tbody>
  );
}

function ScalarComparison({ jobId }: { jobId: string }): ReactNode {
  const job = usePolling("jobs/{job}", { job: jobId }, {}, 0).data;
  const polled = usePolling("jobs/{job}/curves/runs", { job: jobId }, {}, 0);
  const runs = polled.data?.runs;
  if (!job) return null;
  const waitMessage = runs ? "" : (polled.error?.message ?? t("Reading event files…"));
  return <ScalarCharts job={job} runs={runs ?? []} seconds={0} canCompare waitMessage={waitMessage} />;
}
