// Compares two jobs: the differences between their specs, and their training curves in the same charts.

import { Button, Input } from "antd";
import { lazy, type ReactNode, useState } from "react";
import type { SpecDifference, ServerInfo } from "../api";
import { EmptyState } from "../components/EmptyState";
import { toPlainText } from "../format";
import { t } from "../language";
import { navigate, href, useRoute } from "../router";
import { usePolling } from "../usePolling";

const ScalarCharts = lazy(() =>
  import("../trainingCurves/ScalarCharts").then((module) => ({ default: module.ScalarCharts })),
);

export default function ComparePage({ server }: { server: ServerInfo }): ReactNode {
  const { query } = useRoute();
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  return (
    <>
      <h1 className="visually-hidden">{t("Compare")}</h1>
      <JobPairForm key={`${a} ${b}`} a={a} b={b} />
      {a && b && <Differences a={a} b={b} />}
      {a && b && server.kind === "history" && <ScalarComparison jobId={a} />}
    </>
  );
}

function JobPairForm({ a, b }: { a: string; b: string }): ReactNode {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const openComparison = (): void => navigate(["compare"], { a: first.trim(), b: second.trim() });
  return (
    <form
      className="row"
      style={{ marginBottom: 10 }}
      onSubmit={(event) => {
        event.preventDefault();
        openComparison();
      }}
    >
      <Input
        aria-label={t("First job's id")}
        placeholder={t("First job's id")}
        value={first}
        onChange={(event) => setFirst(event.target.value)}
        style={{ width: 290 }}
      />
      <Input
        aria-label={t("Second job's id")}
        placeholder={t("Second job's id")}
        value={second}
        onChange={(event) => setSecond(event.target.value)}
        style={{ width: 290 }}
      />
      <Button type="primary" htmlType="submit" disabled={!first.trim() || !second.trim()}>
        {t("Compare")}
      </Button>
    </form>
  );
}

function Differences({ a, b }: { a: string; b: string }): ReactNode {
  const polled = usePolling("compare", {}, { jobs: `${a},${b}` }, 0);
  const comparison = polled.data;
  if (!comparison) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  const environmentDifferences = comparison.captured;
  return (
    <>
      {!comparison.spec.length && <EmptyState text={t("Both jobs have the same spec.")} />}
      {comparison.spec.length > 0 && (
        <DifferenceTable title={t("Differences between the specs")} a={a} b={b} rows={comparison.spec} />
      )}
      {environmentDifferences.length > 0 && (
        <DifferenceTable title={t("Differences between the environments")} a={a} b={b} rows={environmentDifferences} />
      )}
    </>
  );
}

function DifferenceTable({
  title,
  a,
  b,
  rows,
}: {
  title: string;
  a: string;
  b: string;
  rows: SpecDifference[];
}): ReactNode {
  return (
    <section className="card" style={{ marginBottom: 12 }}>
      <h2>{title}</h2>
      <div className="scroll" tabIndex={0} style={{ maxHeight: 300 }}>
        <table className="small">
          <thead>
            <tr>
              <th scope="col">{t("Field")}</th>
              {[a, b].map((id) => (
                <th key={id} scope="col">
                  <a href={href(["jobs", id])}>{id}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.path}>
                <td className="mono">{row.path}</td>
                <td className="mono">{row.a === null ? "–" : toPlainText(row.a)}</td>
                <td className="mono">{row.b === null ? "–" : toPlainText(row.b)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
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
