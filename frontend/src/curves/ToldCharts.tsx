import type { ReactNode } from "react";
import { LineChart } from "../chart/LineChart";
import { number } from "../format";
import { say } from "../language";
import type { Settings } from "./settings";
import { axisOf, type Told, toldLines } from "./told";

interface Props {
  told: Told;
  tags: string[];
  /** The colours of the tasks that are shown. */
  colours: Map<string, number>;
  settings: Settings;
}

/** A chart a name, a line a task. */
export function ToldCharts({ told, tags, colours, settings }: Props): ReactNode {
  const charts = tags
    .map((tag) => ({ tag, lines: toldLines(told, tag, colours, settings) }))
    .filter(({ lines }) => lines.length);
  if (!charts.length) return null;
  return (
    <section>
      <h2 style={{ fontSize: 14, margin: "8px 0" }}>{say("Told by the programs, over time")}</h2>
      <div className="charts">
        {charts.map(({ tag, lines }) => (
          <section key={tag} className="card">
            <h2>{tag}</h2>
            <LineChart
              label={tag}
              lines={lines}
              axis={axisOf(settings)}
              log={settings.log}
              height={210}
              show={(value) => number(value, 4)}
            />
          </section>
        ))}
      </div>
    </section>
  );
}
