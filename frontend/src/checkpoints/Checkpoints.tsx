// The job's checkpoints, the tensors in one of them, and the statistics of a tensor.

import { Input } from "antd";
import { lazy, type ReactNode, useMemo, useState } from "react";
import type { Checkpoint, Job, Tensor } from "../api";
import { histogramOption } from "../charts/histogramOptions";
import { DescriptionList } from "../components/DescriptionList";
import { EmptyState } from "../components/EmptyState";
import { type TableColumn, VirtualTable } from "../components/VirtualTable";
import { formatBytes, formatNumber } from "../format";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { updateQuery, href, useRoute } from "../router";
import { useDarkMode } from "../theme";
import { FileErrorList } from "../trainingCurves/EventFileErrors";
import { usePolling } from "../usePolling";

const EChart = lazy(() => import("../charts/EChart"));

export default function Checkpoints({ job }: { job: Job }): ReactNode {
  const polled = usePolling("jobs/{job}/checkpoints", { job: job.id }, {}, hasEnded(job) ? 0 : 10);
  const uri = useRoute().query.get("uri");
  if (uri) return <TensorTable job={job.id} uri={uri} />;
  const checkpoints = polled.data?.checkpoints;
  const failures = polled.data?.errors ?? [];
  const errors = (
    <FileErrorList title={t("{count} locations could not be searched", { count: failures.length })} errors={failures} />
  );
  if (!checkpoints) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  if (!checkpoints.length)
    return (
      <>
        {errors}
        <EmptyState text={t("No checkpoints yet.")} />
      </>
    );
  return (
    <>
      {errors}
      <VirtualTable
        label={t("Checkpoints")}
        columns={checkpointColumns(job.id)}
        rows={checkpoints}
        rowKey={(row) => row.uri}
      />
    </>
  );
}

function checkpointColumns(job: string): TableColumn<Checkpoint>[] {
  return [
    {
      key: "uri",
      title: t("Location"),
      width: "minmax(300px, 3fr)",
      sortValue: (row) => row.uri,
      tooltip: (row) => row.uri,
      cell: (row) => <a href={href(["jobs", job, "curves", "checkpoints"], { uri: row.uri })}>{row.uri}</a>,
    },
    {
      key: "step",
      title: t("Step"),
      width: "90px",
      alignEnd: true,
      sortValue: (row) => row.step ?? -1,
      cell: (row) => row.step ?? "",
    },
    { key: "format", title: t("Format"), width: "130px", sortValue: (row) => row.format, cell: (row) => row.format },
    {
      key: "bytes",
      title: t("Size"),
      width: "100px",
      alignEnd: true,
      sortValue: (row) => row.bytes,
      cell: (row) => formatBytes(row.bytes),
    },
    {
      key: "files",
      title: t("Files"),
      width: "70px",
      alignEnd: true,
      sortValue: (row) => row.files,
      cell: (row) => row.files,
    },
    {
      key: "valid",
      title: t("Complete"),
      width: "minmax(120px, 1fr)",
      cell: (row) =>
        row.valid === false ? <span className="bad">{row.reason || "✕"}</span> : row.valid ? "✓" : "",
      tooltip: (row) => row.reason,
    },
  ];
}

function TensorTable({ job, uri }: { job: string; uri: string }): ReactNode {
  const polled = usePolling("jobs/{job}/checkpoints/tensors", { job }, { uri }, 0);
  const [search, setSearch] = useState("");
  const name = useRoute().query.get("tensor") ?? "";
  const tensors = polled.data?.tensors;
  const visibleTensors = useMemo(
    () => (tensors ?? []).filter((each) => each.name.toLowerCase().includes(search.toLowerCase())),
    [tensors, search],
  );
  const count = useMemo(() => (tensors ?? []).reduce((sum, each) => sum + each.count, 0), [tensors]);
  return (
    <>
      <p style={{ margin: "0 0 8px", overflowWrap: "anywhere" }}>
        <a href={href(["jobs", job, "curves", "checkpoints"])}>← {t("Checkpoints")}</a>{" "}
        <span className="mono">{uri}</span>
      </p>
      {!tensors && <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />}
      {tensors && (
        <>
          <div className="row" style={{ marginBottom: 8 }}>
            <Input
              allowClear
              aria-label={t("Search tensors")}
              placeholder={t("Search tensors")}
              onChange={(event) => setSearch(event.target.value)}
              style={{ width: 260 }}
            />
            <span className="muted">
              {t("{tensors} tensors, {count} elements", { tensors: tensors.length, count: formatNumber(count, 4) })}
            </span>
          </div>
          {name && <TensorStatistics job={job} uri={uri} name={name} />}
          <VirtualTable
            label={t("Tensors")}
            columns={tensorColumns()}
            rows={visibleTensors}
            rowKey={(row) => row.name}
            height="calc(100vh - 400px)"
          />
        </>
      )}
    </>
  );
}

function tensorColumns(): TableColumn<Tensor>[] {
  const select = (name: string): void => updateQuery({ tensor: name });
  return [
    {
      key: "name",
      title: t("Name"),
      width: "minmax(260px, 3fr)",
      sortValue: (row) => row.name,
      tooltip: (row) => row.name,
      cell: (row) => (
        <button type="button" className="mono link-button" onClick={() => select(row.name)}>
          {row.name}
        </button>
      ),
    },
    { key: "dtype", title: t("Type"), width: "110px", sortValue: (row) => row.dtype, cell: (row) => row.dtype },
    { key: "shape", title: t("Shape"), width: "minmax(120px, 1fr)", cell: (row) => row.shape.join(" × ") },
    {
      key: "count",
      title: t("Elements"),
      width: "120px",
      alignEnd: true,
      sortValue: (row) => row.count,
      cell: (row) => row.count,
    },
    {
      key: "bytes",
      title: t("Size"),
      width: "100px",
      alignEnd: true,
      sortValue: (row) => row.bytes,
      cell: (row) => formatBytes(row.bytes),
    },
  ];
}

function TensorStatistics({ job, uri, name }: { job: string; uri: string; name: string }): ReactNode {
  const polled = usePolling("jobs/{job}/checkpoints/statistics", { job }, { uri, name }, 0);
  const dark = useDarkMode();
  const statistics = polled.data;
  const option = useMemo(
    () => histogramOption(statistics && { step: 0, time: 0, buckets: statistics.histogram ?? [] }, dark),
    [statistics, dark],
  );
  const formatStatistic = (value: number | null): string => (value === null ? "–" : formatNumber(value, 5));
  return (
    <section
      className="card"
      style={{ marginBottom: 10, display: "grid", gridTemplateColumns: "260px minmax(0, 1fr)" }}
    >
      {statistics ? (
        <>
          <div>
            <h2>{name}</h2>
            <DescriptionList
              items={[
                [t("Minimum"), formatStatistic(statistics.min)],
                [t("Maximum"), formatStatistic(statistics.max)],
                [t("Mean"), formatStatistic(statistics.mean)],
                [t("Standard deviation"), formatStatistic(statistics.std)],
                [t("Zeros"), `${statistics.zeros}`],
                [t("NaN"), `${statistics.nan}`],
                [t("Infinite"), `${statistics.infinite}`],
              ]}
            />
          </div>
          <EChart label={t("Histogram of {name}", { name })} option={option} height={150} />
        </>
      ) : (
        <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />
      )}
    </section>
  );
}
