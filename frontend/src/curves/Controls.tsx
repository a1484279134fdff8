// Which runs and tags are shown, and how.

import { Checkbox, Input, Segmented, Slider } from "antd";
import { type ReactNode, useState } from "react";
import { say } from "../language";
import { amend } from "../route";
import { Toggle } from "../shell/Toggle";
import { lineColour, useDark } from "../theme";
import type { Settings } from "./settings";

/** Whatever has a line, and the number of its colour. */
interface Named {
  id: string;
  label: string;
  colour: number;
}

export function Controls({
  runs,
  tellers,
  settings,
  others,
}: {
  runs: Named[];
  /** Tasks that tell something themselves. */
  tellers: Named[];
  settings: Settings;
  others: boolean;
}): ReactNode {
  const [sought, setSought] = useState("");
  const found = (named: Named[]): Named[] =>
    named.filter(({ label }) => label.toLowerCase().includes(sought.toLowerCase()));
  return (
    <div className="side card">
      <Segmented
        aria-label={say("Axis")}
        size="small"
        block
        value={settings.axis}
        onChange={(value) => amend({ x: value === "step" ? "" : value })}
        options={[
          { value: "step", label: say("Step") },
          { value: "time", label: say("Time") },
          { value: "relative", label: say("Relative") },
        ]}
      />
      <Toggle text={say("Logarithmic scale")} on={settings.log} onChange={(on) => amend({ log: on ? 1 : "" })} />
      <div>
        <span>{say("Smoothing {weight}", { weight: settings.smoothing })}</span>
        <Slider
          min={0}
          max={0.99}
          step={0.01}
          value={settings.smoothing}
          onChange={(value: number) => amend({ smooth: value || "" })}
          ariaLabelForHandle={say("Smoothing")}
          tooltip={{ open: false }}
          style={{ margin: "4px 6px" }}
        />
      </div>
      <Input
        size="small"
        allowClear
        aria-label={say("Tags (a pattern)")}
        placeholder={say("Tags (a pattern)")}
        defaultValue={settings.tag}
        onChange={(event) => amend({ tag: event.target.value })}
      />
      {others && (
        <Input
          size="small"
          allowClear
          aria-label={say("Compare with jobs (ids, commas between)")}
          placeholder={say("Compare with jobs (ids, commas between)")}
          defaultValue={settings.with.join(",")}
          onBlur={(event) => amend({ with: event.target.value.replace(/\s/g, "") })}
          onPressEnter={(event) => amend({ with: event.currentTarget.value.replace(/\s/g, "") })}
        />
      )}
      {runs.length + tellers.length > 8 && (
        <Input
          size="small"
          aria-label={say("Search runs")}
          placeholder={say("Search runs")}
          value={sought}
          onChange={(event) => setSought(event.target.value)}
        />
      )}
      <RunList title={say("Runs")} runs={found(runs)} hidden={settings.hidden} />
      <RunList title={say("Tasks")} runs={found(tellers)} hidden={settings.hidden} />
    </div>
  );
}

function RunList({ title, runs, hidden }: { title: string; runs: Named[]; hidden: string[] }): ReactNode {
  const dark = useDark();
  const turn = (id: string, on: boolean): void => {
    const left = on ? hidden.filter((each) => each !== id) : [...hidden, id];
    amend({ hide: left.length ? JSON.stringify(left) : "" });
  };
  if (!runs.length) return null;
  return (
    <fieldset className="runs" style={{ border: 0, padding: 0, margin: 0 }}>
      <legend className="muted">{title}</legend>
      {runs.map(({ id, label, colour }) => (
        <div key={id}>
          <Checkbox checked={!hidden.includes(id)} onChange={(event) => turn(id, event.target.checked)}>
            <span className="swatch" style={{ background: lineColour(colour, dark) }} />
            {label}
          </Checkbox>
        </div>
      ))}
    </fieldset>
  );
}
