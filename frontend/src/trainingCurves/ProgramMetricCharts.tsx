import type { ReactNode } from "react";
import { t } from "../language";
import type { ChartSettings } from "./chartSettings";
import { bandedMetricLines, metricAxis, type MetricTask, type MetricSeries } from "./programMetrics";
import { TagChart } from "./TagChart";

interface Props {
  series: MetricSeries[];
  names: string[];
  /** The tasks that are shown. */
  tasks: MetricTask[];
  settings: ChartSettings;
  /** The names of several jobs by their ids. */
  jobNames: Map<string, string>;
}

/** One chart per metric, with one line per task. */
export function ProgramMetricCharts({ series, names, tasks, settings, jobNames }: Props): ReactNode {
  const charts = names
    .map((tag) => ({ tag, lines: bandedMetricLines(series, tag, tasks, settings, jobNames) }))
    .filter(({ lines }) => lines.length);
  if (!charts.length) return null;
  return (
    <section>
      <h2 style={{ fontSize: 14, margin: "8px 0" }}>{t("Metrics reported by the program")}</h2>
      <div className="charts">
        {charts.map(({ tag, lines }) => (
          <section key={tag} className="card">
            <TagChart tag={tag} lines={lines} axis={metricAxis(series, tag, settings)} settings={settings} />
          </section>
        ))}
      </div>
    </section>
  );
}
