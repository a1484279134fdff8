// Chooses the range of time that a screen shows.

import { Segmented } from "antd";
import type { ReactNode } from "react";
import { formatTime } from "../format";
import { t } from "../language";
import { START_UP, chooseRange, useTimeRange } from "./timeRange";

const SELECTED = "selected";

/** `startUp`: the time until all programs run can be chosen, too. */
export function RangePicker({ startUp = false }: { startUp?: boolean }): ReactNode {
  const { from, to, preset } = useTimeRange();
  const selected = to !== undefined;
  return (
    <Segmented
      aria-label={t("Time range")}
      className="wrapping"
      value={selected ? SELECTED : preset}
      onChange={(value) => value !== SELECTED && chooseRange(value)}
      options={[
        { value: "", label: t("All") },
        ...(startUp ? [{ value: START_UP, label: t("Start-up") }] : []),
        { value: "1800", label: t("Last 30 min") },
        { value: "300", label: t("Last 5 min") },
        ...(selected ? [{ value: SELECTED, label: `${formatTime(from)} – ${formatTime(to)}` }] : []),
      ]}
    />
  );
}
