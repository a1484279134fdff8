// Chooses the runs and tags to show, and the axis, scale and smoothing of the charts.

import { UndoOutlined } from "@ant-design/icons";
import { Button, Checkbox, Input, Segmented, Slider } from "antd";
import { type ReactNode, useState } from "react";
import { swatchPaint } from "../charts/plotOptions";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { t } from "../language";
import { updateQuery } from "../router";
import { useDarkMode } from "../theme";
import { type ChartSettings, zoomTo } from "./chartSettings";
import { MANY_LINES } from "./rankBand";

/** A run or a task that has a line, and the number of its colour. */
interface LineEntry {
  id: string;
  label: string;
  colour: number;
  dash?: number;
  job: string;
}

/** As many lines of one job as a band can be made of. */
const LINES_OF_BAND = 3;

export function ChartControls({
  runs,
  metricTasks,
  settings,
  canCompare,
  colourBy,
  jobNames,
}: {
  runs: LineEntry[];
  /** The tasks whose programs report metrics. */
  metricTasks: LineEntry[];
  settings: ChartSettings;
  canCompare: boolean;
  /** What has a colour of its own; undefined if only one job is shown. */
  colourBy: "run" | "job" | undefined;
  /** The names of the jobs that are compared, by their ids. */
  jobNames: Map<string, string>;
}): ReactNode {
  const [search, setSearch] = useState("");
  const filterBySearch = (entries: LineEntry[]): LineEntry[] =>
    entries.filter(({ label }) => label.toLowerCase().includes(search.toLowerCase()));
  return (
    <div className="sidebar card">
      <Segmented
        aria-label={t("Horizontal axis")}
        size="small"
        block
        value={settings.axis}
        onChange={(value) => updateQuery({ x: value === "step" ? "" : value, zoom: "" })}
        options={[
          { value: "step", label: t("Step") },
          { value: "time", label: t("Time") },
          { value: "relative", label: t("Relative") },
        ]}
      />
      <LabeledSwitch
        text={t("Logarithmic scale")}
        on={settings.log}
        onChange={(on) => updateQuery({ log: on ? 1 : "" })}
      />
      {settings.axis !== "time" && (
        <LabeledSwitch
          text={t("Logarithmic x axis")}
          on={settings.logX}
          onChange={(on) => updateQuery({ logx: on ? 1 : "" })}
        />
      )}
      <LabeledSwitch
        text={t("Cut off outliers")}
        on={settings.withoutOutliers}
        onChange={(on) => updateQuery({ outliers: on ? "cut" : "" })}
      />
      {settings.zoom && (
        <Button size="small" icon={<UndoOutlined />} onClick={() => zoomTo()}>
          {t("Show all")}
        </Button>
      )}
      <div>
        <span>{t("Smoothing {weight}", { weight: settings.smoothing })}</span>
        <Slider
          min={0}
          max={0.99}
          step={0.01}
          value={settings.smoothing}
          onChange={(value: number) => updateQuery({ smooth: value || "" })}
          ariaLabelForHandle={t("Smoothing")}
          tooltip={{ open: false }}
          style={{ margin: "4px 6px" }}
        />
      </div>
      <Input
        size="small"
        allowClear
        aria-label={t("Filter tags (regex)")}
        placeholder={t("Filter tags (regex)")}
        defaultValue={settings.tag}
        onChange={(event) => updateQuery({ tag: event.target.value })}
      />
      {canCompare && (
        <Input
          size="small"
          allowClear
          aria-label={t("Compare with jobs: id, id")}
          placeholder={t("Compare with jobs: id, id")}
          defaultValue={settings.with.join(",")}
          onBlur={(event) => updateQuery({ with: event.target.value.replace(/\s/g, "") })}
          onPressEnter={(event) => updateQuery({ with: event.currentTarget.value.replace(/\s/g, "") })}
        />
      )}
      {runs.length + metricTasks.length > 8 && (
        <Input
          size="small"
          aria-label={t("Search runs")}
          placeholder={t("Search runs")}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      )}
      {colourBy && (
        <LabeledSwitch
          text={t("A colour for each job")}
          on={colourBy === "job"}
          onChange={(on) => updateQuery({ colour: on ? "job" : "run" })}
        />
      )}
      {Math.max(runs.length, metricTasks.length) >= LINES_OF_BAND && (
        <LabeledSwitch
          text={t("Band and odd ones")}
          on={settings.band ?? metricTasks.length >= MANY_LINES}
          onChange={(on) => updateQuery({ band: on ? 1 : 0 })}
        />
      )}
      {groupByJob(filterBySearch(runs), colourBy ? jobNames : undefined).map(([title, entries]) => (
        <LineToggles key={title} title={title || t("Runs")} entries={entries} hidden={settings.hidden} />
      ))}
      <LineToggles title={t("Tasks")} entries={filterBySearch(metricTasks)} hidden={settings.hidden} />
    </div>
  );
}

/** Returns the entries of each job under its name; all of them under no name if there is one job. */
function groupByJob(entries: LineEntry[], names: Map<string, string> | undefined): [string, LineEntry[]][] {
  if (!names) return [["", entries]];
  const jobs = [...new Set(entries.map(({ job }) => job))];
  return jobs.map((job) => {
    const prefix = `${names.get(job) ?? job} · `;
    const short = (label: string): string => (label.startsWith(prefix) ? label.slice(prefix.length) : label);
    const own = entries.filter((entry) => entry.job === job);
    return [
      [names.get(job), job].filter(Boolean).join(" · "),
      own.map((entry) => ({ ...entry, label: short(entry.label) })),
    ];
  });
}

function LineToggles({ title, entries, hidden }: { title: string; entries: LineEntry[]; hidden: string[] }): ReactNode {
  const dark = useDarkMode();
  const setVisible = (id: string, on: boolean): void => {
    const left = on ? hidden.filter((each) => each !== id) : [...hidden, id];
    updateQuery({ hide: left.length ? JSON.stringify(left) : "" });
  };
  if (!entries.length) return null;
  return (
    <fieldset className="runs" style={{ border: 0, padding: 0, margin: 0 }}>
      <legend className="muted">{title}</legend>
      {entries.map(({ id, label, colour, dash }) => (
        <div key={id}>
          <Checkbox checked={!hidden.includes(id)} onChange={(event) => setVisible(id, event.target.checked)}>
            <span className={dash ? "swatch dashed" : "swatch"} style={{ background: swatchPaint(colour, dash, dark) }} />
            {label}
          </Checkbox>
        </div>
      ))}
    </fieldset>
  );
}
