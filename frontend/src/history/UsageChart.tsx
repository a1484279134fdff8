// A bar for each day: what its jobs used. The table below it has the same numbers.

import { Segmented } from "antd";
import { type ReactNode, useMemo } from "react";
import type { UserUsage } from "../api";
import EChart from "../charts/EChart";
import { formatAmount, formatNumber } from "../format";
import { t } from "../language";
import { navigate, updateQuery, useRoute } from "../router";
import { cssVariables, lineColour, useDarkMode } from "../theme";
import { HOURS, type Hours, usageByDay } from "./usageByDay";

const HEIGHT = 160;

export default function UsageChart({ rows }: { rows: UserUsage[] }): ReactNode {
  const { query } = useRoute();
  const titles = { gpu_hours: t("GPU hours"), cpu_hours: t("CPU hours"), memory_gib_hours: t("Memory (GiB hours)") };
  // Without GPUs there is nothing to see of them.
  const byDefault = rows.some((row) => row.gpu_hours) ? "gpu_hours" : "cpu_hours";
  const hours = HOURS.find((each) => each === query.get("hours")) ?? byDefault;
  return (
    <section className="card" style={{ marginBottom: 8 }}>
      <div className="row">
        <h2>{t("{hours} by day", { hours: titles[hours] })}</h2>
        <span className="grow" />
        <Segmented
          size="small"
          aria-label={t("Chart")}
          value={hours}
          options={HOURS.map((each) => ({ value: each, label: titles[each] }))}
          onChange={(next) => updateQuery({ hours: next === byDefault ? "" : next }, true)}
        />
      </div>
      <DayBars rows={rows} hours={hours} title={titles[hours]} />
    </section>
  );
}

function DayBars({ rows, hours, title }: { rows: UserUsage[]; hours: Hours; title: string }): ReactNode {
  const dark = useDarkMode();
  const option = useMemo(() => barOption(usageByDay(rows, hours), title, dark), [rows, hours, title, dark]);
  return (
    <EChart
      label={t("{hours} by day", { hours: title })}
      option={option}
      height={HEIGHT}
      onItemClick={(day) => navigate(["jobs"], { from: day, to: day })}
    />
  );
}

function barOption(days: [day: string, value: number][], title: string, dark: boolean): object {
  const colour = cssVariables(dark)["--text"];
  const style = { axisLine: { lineStyle: { color: colour } } };
  return {
    grid: { left: 64, right: 12, top: 12, bottom: 28 },
    xAxis: { type: "category", data: days.map(([day]) => day), axisLabel: { color: colour }, ...style },
    yAxis: {
      type: "value",
      splitNumber: 3,
      axisLabel: { color: colour, formatter: (tick: number) => formatNumber(tick) },
      splitLine: { lineStyle: { color: cssVariables(dark)["--border"] } },
    },
    tooltip: {
      trigger: "item",
      formatter: ({ dataIndex }: { dataIndex: number }) => {
        const [day, value] = days[dataIndex] ?? ["", 0];
        return `${day}\n${title}: ${formatAmount(value)}`;
      },
    },
    series: [
      { type: "bar", barMaxWidth: 24, itemStyle: { color: lineColour(0, dark) }, data: days.map(([, value]) => value) },
    ],
  };
}
