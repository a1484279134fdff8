import type { ReactNode } from "react";
import { LineChart } from "../chart/LineChart";
import { number } from "../format";
import { say } from "../language";
import type { Settings } from "./settings";
import { axisOf, type Teller, type ToldLine, toldLines } from "./told";

interface Props {
  lines: ToldLine[];
  tags: string[];
  /** Those that are shown. */
  tellers: Teller[];
  settings: Settings;
}

/** A chart a name, a line a task. */
export function ToldCharts({ lines, tags, tellers, settings }: Props): ReactNode {
  const charts = tags
    .map((tag) => ({ tag, drawn: toldLines(lines, tag, tellers, settings) }))
    .filter(({ drawn }) => drawn.length);
  if (!charts.length) return null;
  return (
    <section>
      <h2 style={{ fontSize: 14, margin: "8px 0" }}>{say("Told by the programs, over time")}</h2>
      <div className="charts">
        {charts.map(({ tag, drawn }) => (
          <section key={tag} className="card">
            <h2>{tag}</h2>
            <LineChart
              label={tag}
              lines={drawn}
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
