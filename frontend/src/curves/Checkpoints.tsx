// The job's checkpoints, and what lies in one of them: names, shapes, and how a tensor's numbers are spread.

import { Input } from "antd";
import { lazy, type ReactNode, useMemo, useState } from "react";
import type { Checkpoint, Job, Tensor } from "../api";
import { bytes, number } from "../format";
import { hasEnded } from "../job/jobState";
import { say } from "../language";
import { usePolled } from "../polling";
import { retold } from "../retold";
import { amend, href, useRoute } from "../route";
import { Facts } from "../shell/Facts";
import { type Column, Grid } from "../shell/Grid";
import { Nothing } from "../shell/Nothing";
import { useDark } from "../theme";
import { oneStep } from "./histogram";
import { Told } from "./RunErrors";

const EChart = lazy(() => import("../chart/EChart"));

export default function Checkpoints({ job }: { job: Job }): ReactNode {
  const polled = usePolled("jobs/{job}/checkpoints", { job: job.id }, {}, hasEnded(job) ? 0 : 10);
  const uri = useRoute().query.get("uri");
  if (uri) return <Tensors job={job.id} uri={uri} />;
  const found = polled.data?.checkpoints;
  const failed = polled.data?.errors ?? [];
  const errors = <Told title={say("{count} places could not be searched", { count: failed.length })} errors={failed} />;
  if (!found) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  if (!found.length)
    return (
      <>
        {errors}
        <Nothing text={say("No checkpoints yet.")} />
      </>
    );
  return (
    <>
      {errors}
      <Grid label={say("Checkpoints")} columns={columnsOf(job.id)} rows={found} rowKey={(row) => row.uri} />
    </>
  );
}

function columnsOf(job: string): Column<Checkpoint>[] {
  return [
    {
      key: "uri",
      title: say("Where"),
      width: "minmax(300px, 3fr)",
      by: (row) => row.uri,
      hint: (row) => row.uri,
      cell: (row) => <a href={href(["jobs", job, "curves", "checkpoints"], { uri: row.uri })}>{row.uri}</a>,
    },
    {
      key: "step",
      title: say("Step"),
      width: "90px",
      end: true,
      by: (row) => row.step ?? -1,
      cell: (row) => row.step ?? "",
    },
    { key: "format", title: say("Format"), width: "130px", by: (row) => row.format, cell: (row) => row.format },
    {
      key: "bytes",
      title: say("Size"),
      width: "100px",
      end: true,
      by: (row) => row.bytes,
      cell: (row) => bytes(row.bytes),
    },
    { key: "files", title: say("Files"), width: "70px", end: true, by: (row) => row.files, cell: (row) => row.files },
    {
      key: "valid",
      title: say("Whole"),
      width: "minmax(120px, 1fr)",
      cell: (row) => (row.valid === false ? <span className="bad">{retold(row.reason) || "✕"}</span> : row.valid ? "✓" : ""),
      hint: (row) => retold(row.reason),
    },
  ];
}

function Tensors({ job, uri }: { job: string; uri: string }): ReactNode {
  const polled = usePolled("jobs/{job}/checkpoints/tensors", { job }, { uri }, 0);
  const [sought, setSought] = useState("");
  const name = useRoute().query.get("tensor") ?? "";
  const tensors = polled.data?.tensors;
  const shown = useMemo(
    () => (tensors ?? []).filter((each) => each.name.toLowerCase().includes(sought.toLowerCase())),
    [tensors, sought],
  );
  const count = useMemo(() => (tensors ?? []).reduce((sum, each) => sum + each.count, 0), [tensors]);
  return (
    <>
      <p style={{ margin: "0 0 8px", overflowWrap: "anywhere" }}>
        <a href={href(["jobs", job, "curves", "checkpoints"])}>← {say("Checkpoints")}</a>{" "}
        <span className="mono">{uri}</span>
      </p>
      {!tensors && <Nothing text={polled.error ? polled.error.message : say("Loading…")} />}
      {tensors && (
        <>
          <div className="row" style={{ marginBottom: 8 }}>
            <Input
              allowClear
              aria-label={say("Search tensors")}
              placeholder={say("Search tensors")}
              onChange={(event) => setSought(event.target.value)}
              style={{ width: 260 }}
            />
            <span className="muted">
              {say("{tensors} tensors, {count} numbers", { tensors: tensors.length, count: number(count, 4) })}
            </span>
          </div>
          {name && <Statistics job={job} uri={uri} name={name} />}
          <Grid
            label={say("Tensors")}
            columns={tensorColumns()}
            rows={shown}
            rowKey={(row) => row.name}
            height="calc(100vh - 400px)"
          />
        </>
      )}
    </>
  );
}

function tensorColumns(): Column<Tensor>[] {
  const pick = (name: string): void => amend({ tensor: name });
  return [
    {
      key: "name",
      title: say("Name"),
      width: "minmax(260px, 3fr)",
      by: (row) => row.name,
      hint: (row) => row.name,
      cell: (row) => (
        <button type="button" className="mono plain" onClick={() => pick(row.name)}>
          {row.name}
        </button>
      ),
    },
    { key: "dtype", title: say("Type"), width: "110px", by: (row) => row.dtype, cell: (row) => row.dtype },
    { key: "shape", title: say("Shape"), width: "minmax(120px, 1fr)", cell: (row) => row.shape.join(" × ") },
    {
      key: "count",
      title: say("Numbers"),
      width: "120px",
      end: true,
      by: (row) => row.count,
      cell: (row) => row.count,
    },
    {
      key: "bytes",
      title: say("Size"),
      width: "100px",
      end: true,
      by: (row) => row.bytes,
      cell: (row) => bytes(row.bytes),
    },
  ];
}

function Statistics({ job, uri, name }: { job: string; uri: string; name: string }): ReactNode {
  const polled = usePolled("jobs/{job}/checkpoints/statistics", { job }, { uri, name }, 0);
  const dark = useDark();
  const found = polled.data;
  const option = useMemo(
    () => oneStep(found && { step: 0, time: 0, buckets: found.histogram ?? [] }, dark),
    [found, dark],
  );
  const told = (value: number | null): string => (value === null ? "–" : number(value, 5));
  return (
    <section
      className="card"
      style={{ marginBottom: 10, display: "grid", gridTemplateColumns: "260px minmax(0, 1fr)" }}
    >
      {found ? (
        <>
          <div>
            <h2>{name}</h2>
            <Facts
              facts={[
                [say("Least"), told(found.min)],
                [say("Most"), told(found.max)],
                [say("Mean"), told(found.mean)],
                [say("Deviation"), told(found.std)],
                [say("Zeros"), `${found.zeros}`],
                [say("NaN"), `${found.nan}`],
                [say("Infinite"), `${found.infinite}`],
              ]}
            />
          </div>
          <EChart label={say("How {name} is spread", { name })} option={option} height={150} />
        </>
      ) : (
        <Nothing text={polled.error ? polled.error.message : say("Loading…")} />
      )}
    </section>
  );
}
