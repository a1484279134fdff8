// ECharts options of runs: parallel coordinates, and a scatter plot of two columns.

import { ParallelChart, ScatterChart } from "echarts/charts";
import { ParallelComponent } from "echarts/components";
import { use as withParts } from "echarts/core";
import type { JobRow } from "../api";
import { formatNumber } from "../format";
import { cssVariables } from "../theme";
import type { RunColumn } from "./runColumns";

withParts([ParallelChart, ParallelComponent, ScatterChart]);

/** A run with a value in each of the columns. */
export interface Run {
  job: JobRow;
  values: (number | string)[];
}

type Colour = [red: number, green: number, blue: number];

const LOW: Colour = [31, 111, 214];
const HIGH: Colour = [230, 103, 23];
/** Numbers above zero that span more than this factor have a logarithmic axis: learning rates. */
const LOG_SPAN = 50;

/** Returns the runs that have a value in each column. */
export function completeRuns(jobs: JobRow[], columns: RunColumn[]): Run[] {
  const runs: Run[] = [];
  for (const job of jobs) {
    const values = columns.map((column) => column.raw(job));
    if (values.every((value) => value !== undefined)) runs.push({ job, values });
  }
  return runs;
}

export function parallelOption(runs: Run[], columns: RunColumn[], colourBy: number, dark: boolean): object {
  const colours = runColours(runs, colourBy);
  return {
    parallel: { left: 80, right: 90, top: 50, bottom: 30 },
    parallelAxis: columns.map((column, dim) => ({
      dim,
      name: column.title,
      nameTruncate: { maxWidth: 160 },
      ...axis(runs, dim, dark),
    })),
    tooltip: { trigger: "item", formatter: tooltipFormatter(runs, columns) },
    series: [
      {
        type: "parallel",
        lineStyle: { width: 2, opacity: 0.7 },
        emphasis: { lineStyle: { width: 4, opacity: 1 } },
        data: runs.map(({ job, values }, index) => ({
          name: job.id,
          value: values,
          lineStyle: { color: colours[index] },
        })),
      },
    ],
  };
}

/** Draws the second column over the first; the last column, if there is a third, gives the colour. */
export function scatterOption(runs: Run[], columns: RunColumn[], dark: boolean): object {
  const colours = runColours(runs, columns.length - 1);
  const [x, y] = columns;
  const named = { nameLocation: "middle", nameGap: 32, splitLine: { show: false } };
  return {
    grid: { left: 80, right: 30, top: 20, bottom: 56 },
    xAxis: { name: x?.title, ...named, ...axis(runs, 0, dark) },
    yAxis: { name: y?.title, ...named, nameGap: 56, ...axis(runs, 1, dark) },
    tooltip: { trigger: "item", formatter: tooltipFormatter(runs, columns) },
    series: [
      {
        type: "scatter",
        symbolSize: 10,
        data: runs.map(({ job, values }, index) => ({
          name: job.id,
          value: values.slice(0, 2),
          itemStyle: { color: colours[index] },
        })),
      },
    ],
  };
}

function axis(runs: Run[], index: number, dark: boolean): object {
  const colour = cssVariables(dark)["--text"];
  const style = { nameTextStyle: { color: colour }, axisLine: { lineStyle: { color: colour } } };
  const values = runs.map((run) => run.values[index] ?? "");
  const numbers = values.filter((value) => typeof value === "number");
  if (numbers.length < values.length)
    return {
      type: "category",
      data: [...new Set(values.map(String))].sort((a, b) => a.localeCompare(b)),
      axisLabel: { color: colour, width: 120, overflow: "truncate" },
      ...style,
    };
  const least = Math.min(...numbers);
  const logarithmic = least > 0 && Math.max(...numbers) / least > LOG_SPAN;
  return {
    type: logarithmic ? "log" : "value",
    scale: true,
    axisLabel: { color: colour, formatter: (tick: number) => formatNumber(tick) },
    ...style,
  };
}

/** Returns the colour of each run: from blue for the least value of the column to orange for the greatest. */
function runColours(runs: Run[], index: number): string[] {
  const found = runs.map((run) => run.values[index]);
  const texts = [...new Set(found.filter((value) => typeof value === "string"))].sort((a, b) => a.localeCompare(b));
  // Texts have a colour each, in the order of the alphabet.
  const rank = (value: (typeof found)[number]): unknown => (texts.length ? texts.indexOf(String(value)) : value);
  const numbers = found.map(rank).filter((value) => typeof value === "number");
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  return runs.map(({ values }) => {
    const value = rank(values[index]);
    const share = typeof value === "number" && high > low ? (value - low) / (high - low) : 0;
    return `rgb(${LOW.map((from, part) => Math.round(from + share * ((HIGH[part] ?? from) - from))).join(",")})`;
  });
}

function tooltipFormatter(runs: Run[], columns: RunColumn[]): (item: { dataIndex: number }) => string {
  return ({ dataIndex }) => {
    const run = runs[dataIndex];
    if (!run) return "";
    const lines = columns.map((column) => `${column.title}: ${column.value(run.job)}`);
    return [`${run.job.name}  ${run.job.id}`, ...lines].join("\n");
  };
}
