// The phases of an attempt with their colours, and the timeline as an ECharts option.

import type { Phase, Timeline } from "../api";
import { formatDuration, formatTime } from "../format";
import { t } from "../language";
import { cssVariables } from "../theme";
import { eventName, phaseName } from "./phaseNames";

export const PHASES: Phase[] = ["asked", "allocated", "launched", "localising", "joined", "running"];

const PHASE_COLOURS: Record<Phase, string> = {
  asked: "#c9ced4",
  allocated: "#d8b25c",
  launched: "#e08a3c",
  localising: "#8f6fd1",
  joined: "#49a5b8",
  running: "#3b82d0",
};

export function phaseColour(phase: Phase): string {
  return PHASE_COLOURS[phase] ?? "#8c959f";
}

const BAR_HEIGHT = 14;
/** The names of failures stand above those of restarts, which come at about the same time. */
const FAILURE_LABEL_HEIGHT = 20;

interface TimelineRow {
  name: string;
  spans: Timeline["tasks"][number]["spans"];
  exit: string;
}

/** Makes a row for each try of each task, in the order of the answer. */
export function timelineRows(timeline: Timeline, role: string): TimelineRow[] {
  const tries = new Map<string, number>();
  for (const { task } of timeline.tasks) tries.set(task, (tries.get(task) ?? 0) + 1);
  return timeline.tasks
    .filter(({ task }) => !role || task.startsWith(`${role}:`))
    .map(({ task, try_number, spans, exit }) => ({
      name: (tries.get(task) ?? 0) > 1 ? `${task} #${try_number}` : task,
      spans,
      exit,
    }));
}

/** Builds the chart: time runs to the right, tries are rows, and lines mark the first failure and the last. */
export function timelineChartOption(timeline: Timeline, rows: TimelineRow[], dark: boolean, visible: number): object {
  const colours = cssVariables(dark);
  const now = timeline.to || Date.now() / 1000;
  const data = rows.flatMap((row, index) =>
    row.spans.map((span) => ({
      name: row.name,
      value: [index, span.start * 1000, (span.end || now) * 1000],
      phase: span.phase,
      exit: row.exit,
      itemStyle: { color: phaseColour(span.phase) },
    })),
  );
  const zoom =
    rows.length > visible
      ? [
          {
            type: "slider",
            filterMode: "none",
            yAxisIndex: 0,
            startValue: 0,
            endValue: visible - 1,
            width: 14,
            right: 4,
            showDetail: false,
          },
        ]
      : [];
  return {
    grid: { left: 120, right: 34, top: 26 + FAILURE_LABEL_HEIGHT, bottom: 34 },
    xAxis: {
      type: "time",
      min: timeline.from * 1000,
      max: now * 1000,
      axisLabel: { color: colours["--muted"], hideOverlap: true },
      splitLine: { show: true, lineStyle: { color: colours["--border"] } },
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: rows.map(({ name }) => name),
      axisLabel: { color: colours["--muted"], width: 108, overflow: "truncate" },
      axisTick: { show: false },
    },
    dataZoom: [
      { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
      ...zoom,
    ],
    tooltip: { formatter: formatTooltip },
    series: [
      {
        type: "custom",
        encode: { x: [1, 2], y: 0 },
        data,
        renderItem: renderBar,
        clip: true,
        markLine: markLines(timeline, colours["--bad"], colours["--muted"]),
      },
    ],
  };
}

interface TooltipParams {
  data: { name: string; value: [number, number, number]; phase: Phase; exit: string };
}

function formatTooltip(shown: unknown): string {
  const { data } = shown as TooltipParams;
  if (!data?.value) return (shown as { name?: string }).name ?? "";
  const [, start, end] = data.value;
  const lines = [
    data.name,
    `${phaseName(data.phase)} ${formatDuration((end - start) / 1000)}`,
    `${formatTime(start / 1000)} – ${formatTime(end / 1000)}`,
  ];
  return [...lines, data.exit].filter(Boolean).join("\n");
}

interface RenderItemApi {
  value: (index: number) => number;
  coord: (point: [number, number]) => [number, number];
  style: () => object;
}

function renderBar(_: unknown, api: RenderItemApi): object {
  const [left, middle] = api.coord([api.value(1), api.value(0)]);
  const [right] = api.coord([api.value(2), api.value(0)]);
  const shape = { x: left, y: middle - BAR_HEIGHT / 2, width: Math.max(1, right - left), height: BAR_HEIGHT };
  return { type: "rect", shape, style: api.style() };
}

function markLines(timeline: Timeline, bad: string, muted: string): object {
  const failures = [
    { failure: timeline.first_failure, name: t("first failure") },
    { failure: timeline.last_failure, name: t("last failure") },
  ];
  const failed = failures.flatMap(({ failure, name }) =>
    failure
      ? [
          {
            xAxis: failure.time * 1000,
            name,
            lineStyle: { color: bad, width: 2, type: "solid" },
            label: { color: bad, distance: [0, FAILURE_LABEL_HEIGHT] },
          },
        ]
      : [],
  );
  const others = timeline.marks
    .filter(({ kind }) => kind === "restarted" || kind === "takeover" || kind === "save")
    .slice(-20)
    .map((mark) => ({
      xAxis: mark.time * 1000,
      name: eventName(mark.kind),
      lineStyle: { color: muted },
      label: { color: muted },
    }));
  return { symbol: "none", silent: true, label: { formatter: "{b}", position: "start" }, data: [...others, ...failed] };
}
