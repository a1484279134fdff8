import type { ReactNode } from "react";
import { LineChart } from "../charts/LineChart";
import { formatNumber } from "../format";
import { t } from "../language";
import type { ChartSettings } from "./chartSettings";
import { metricAxis, type MetricTask, type MetricSeries, metricLines } from "./programMetrics";

interface Props {
  series: MetricSeries[];
  names: string[];
  /** The tasks that are shown. */
  tasks: MetricTask[];
  settings: ChartSettings;
}

/** One chart per metric, with one line per task. */
export function ProgramMetricCharts({ series, names, tasks, settings }: Props): ReactNode {
  const charts = names
    .map((tag) => ({ tag, lines: metricLines(series, tag, tasks, settings) }))
    .filter(({ lines }) => lines.length);
  if (!charts.length) return null;
  return (
    <section>
      <h2 style={{ fontSize: 14, margin: "8px 0" }}>{t("Metrics reported by the program")}</h2>
      <div className="charts">
        {charts.map(({ tag, lines }) => (
          <section key={tag} className="card">
            <h2>{tag}</h2>
            <LineChart
              label={tag}
              lines={lines}
              axis={metricAxis(series, tag, settings)}
              log={settings.log}
              height={210}
              formatValue={(value) => formatNumber(value, 4)}
            />
          </section>
        ))}
      </div>
    </section>
  );
}
