import { type ReactNode, useMemo, useState } from "react";
import { ChartCard } from "../charts/ChartCard";
import type { ChartLine } from "../charts/chartLines";
import type { AxisKind, ChartExtent } from "../charts/plotOptions";
import { formatNumber } from "../format";
import { type ChartSettings, togglePin, zoomTo } from "./chartSettings";

interface Props {
  tag: string;
  lines: ChartLine[];
  axis: AxisKind;
  settings: ChartSettings;
  onExpand?: (expanded: boolean) => void;
}

type Range = [from: number, to: number];

/** The chart of one tag. A part of the axis that is selected in one chart is shown in all charts with the same axis. */
export function TagChart({ tag, lines, axis, settings, onExpand }: Props): ReactNode {
  const [ownZoom, setOwnZoom] = useState<Range>(); // of an axis that is not the one of all charts
  const common = axis === settings.axis;
  const zoom = common ? settings.zoom : ownZoom;
  const setZoom = common ? zoomTo : setOwnZoom;
  const { withoutOutliers } = settings;
  const extent = useMemo((): ChartExtent => ({ withoutOutliers, ...(zoom ? { x: zoom } : {}) }), [withoutOutliers, zoom]);
  return (
    <ChartCard
      label={tag}
      lines={lines}
      axis={axis}
      log={settings.log}
      logX={settings.logX && axis !== "time"}
      height={210}
      syncKey={`curves ${axis}`}
      formatValue={formatTagValue}
      extent={extent}
      onSelect={(from, to) => setZoom([from, to])}
      onReset={() => setZoom()}
      onPin={(id) => togglePin(id, settings.pinned)}
      zoomed={zoom !== undefined}
      {...(onExpand ? { onExpand } : {})}
    />
  );
}

function formatTagValue(value: number): string {
  return formatNumber(value, 4);
}
