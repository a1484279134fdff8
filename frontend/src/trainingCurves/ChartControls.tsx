// Chooses the runs and tags to show, and the axis, scale and smoothing of the charts.

import { Checkbox, Input, Segmented, Slider } from "antd";
import { type ReactNode, useState } from "react";
import { LabeledSwitch } from "../components/LabeledSwitch";
import { t } from "../language";
import { updateQuery } from "../router";
import { lineColour, useDarkMode } from "../theme";
import type { ChartSettings } from "./chartSettings";

/** A run or a task that has a line, and the number of its colour. */
interface LineEntry {
  id: string;
  label: string;
  colour: number;
}

export function ChartControls({
  runs,
  metricTasks,
  settings,
  canCompare,
}: {
  runs: LineEntry[];
  /** The tasks whose programs report metrics. */
  metricTasks: LineEntry[];
  settings: ChartSettings;
  canCompare: boolean;
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
        onChange={(value) => updateQuery({ x: value === "step" ? "" : value })}
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
      <LineToggles title={t("Runs")} entries={filterBySearch(runs)} hidden={settings.hidden} />
      <LineToggles title={t("Tasks")} entries={filterBySearch(metricTasks)} hidden={settings.hidden} />
    </div>
  );
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
      {entries.map(({ id, label, colour }) => (
        <div key={id}>
          <Checkbox checked={!hidden.includes(id)} onChange={(event) => setVisible(id, event.target.checked)}>
            <span className="swatch" style={{ background: lineColour(colour, dark) }} />
            {label}
          </Checkbox>
        </div>
      ))}
    </fieldset>
  );
}
