// Draws the runs of the list: parallel coordinates of the chosen columns, or two of them as a scatter plot.

import { Select } from "antd";
import { type ReactNode, useMemo } from "react";
import type { QueryParams } from "../api";
import EChart from "../charts/EChart";
import { EmptyState } from "../components/EmptyState";
import { t } from "../language";
import { navigate, updateQuery, useRoute } from "../router";
import { useDarkMode } from "../theme";
import { useLatestData, usePolling } from "../usePolling";
import { completeRuns, parallelOption, scatterOption } from "./runChartOptions";
import type { RunColumn } from "./runColumns";

/** The most jobs in one answer of the server. */
const MAX_JOBS = 500;
const CHART_HEIGHT = 460;
const AXIS_WIDTH = 150;

interface Props {
  kind: "parallel" | "scatter";
  params: QueryParams<"jobs">;
  /** The columns that are shown, as far as they can be axes. */
  columns: RunColumn[];
}

export default function RunCharts({ kind, params, columns }: Props): ReactNode {
  const { query } = useRoute();
  const dark = useDarkMode();
  const polled = usePolling("jobs", {}, { ...params, limit: MAX_JOBS }, 30);
  const answer = useLatestData(polled);
  const colourBy = columns.find(({ key }) => key === query.get("colour")) ?? columns.find(isMetric) ?? columns.at(-1);
  const x = columns.find(({ key }) => key === query.get("across")) ?? columns.find((each) => each !== colourBy);
  const y = columns.find(({ key }) => key === query.get("up")) ?? colourBy;
  const axes = useMemo(
    () => (kind === "parallel" ? columns : [x, y, colourBy].filter((each) => each !== undefined)),
    [kind, columns, x, y, colourBy],
  );
  const runs = useMemo(() => completeRuns(answer?.jobs ?? [], axes), [answer, axes]);
  const option = useMemo(
    () =>
      kind === "parallel"
        ? parallelOption(runs, axes, colourBy ? axes.indexOf(colourBy) : 0, dark)
        : scatterOption(runs, axes, dark),
    [kind, runs, axes, colourBy, dark],
  );
  if (!answer) return <EmptyState text={polled.error ? polled.error.message : t("Loading…")} />;
  if (!x || !y || !colourBy)
    return <EmptyState text={t("Choose at least two columns with metrics, hyperparameters or hours.")} />;
  return (
    <section className="card">
      <div className="row">
        {kind === "scatter" && <AxisSelect name="across" label={t("Across")} columns={columns} chosen={x} />}
        {kind === "scatter" && <AxisSelect name="up" label={t("Up")} columns={columns} chosen={y} />}
        <AxisSelect name="colour" label={t("Colour")} columns={columns} chosen={colourBy} />
        <span className="muted" role="status">
          {t("{shown} of {all} jobs have a value on each axis. Blue is the least value, orange the greatest.", {
            shown: runs.length,
            all: answer.jobs.length,
          })}
        </span>
      </div>
      <div className="scroll" tabIndex={0} role="group" aria-label={t("Chart")}>
        <div style={{ minWidth: kind === "parallel" ? AXIS_WIDTH * axes.length : undefined }}>
          <EChart
            key={`${kind} ${axes.map(({ key }) => key).join(",")}`}
            label={axes.map(({ title }) => title).join(", ")}
            option={option}
            height={CHART_HEIGHT}
            onItemClick={(id) => navigate(["jobs", id])}
          />
        </div>
      </div>
    </section>
  );
}

function isMetric({ key }: RunColumn): boolean {
  return key.startsWith("metric:");
}

interface AxisSelectProps {
  name: "across" | "up" | "colour";
  label: string;
  columns: RunColumn[];
  chosen: RunColumn;
}

function AxisSelect({ name, label, columns, chosen }: AxisSelectProps): ReactNode {
  return (
    <span className="row">
      <span aria-hidden="true">{label}</span>
      <Select
        size="small"
        aria-label={label}
        value={chosen.key}
        options={columns.map(({ key, title }) => ({ value: key, label: title }))}
        onChange={(key) => updateQuery({ [name]: key }, true)}
        popupMatchSelectWidth={false}
        style={{ minWidth: 120 }}
      />
    </span>
  );
}
