// A chart of lines in a card: its title, its menu with files to download, and the same chart in the whole window.

import { CloseOutlined, FullscreenOutlined, MoreOutlined, UndoOutlined } from "@ant-design/icons";
import { Button, Dropdown } from "antd";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import type uPlot from "uplot";
import { t } from "../language";
import { useDarkMode } from "../theme";
import { LineChart, type LineChartProps } from "./LineChart";

interface Props extends LineChartProps {
  /** Called when the chart takes the whole window, and when it is small again. */
  onExpand?: (expanded: boolean) => void;
  /** Whether only a part of the horizontal axis is shown. */
  zoomed?: boolean;
  /** Controls beside the chart that its own window has, too. */
  controls?: ReactNode;
}

/** The parts of a card that every chart has, for charts that are drawn otherwise, too. */
export function ChartHead({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="chart-head">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function ChartCard({ onExpand, zoomed = false, controls, ...chart }: Props): ReactNode {
  const { label, onReset } = chart;
  const [expanded, setExpanded] = useState(false);
  const plot = useRef<uPlot>(null);
  const expand = (on: boolean): void => {
    setExpanded(on);
    onExpand?.(on);
  };
  return (
    <>
      <ChartHead title={label}>
        {zoomed && onReset && <ResetButton onReset={onReset} />}
        <ExpandButton label={label} onExpand={() => expand(true)} />
        <FileMenu chart={chart} plot={plot} />
      </ChartHead>
      <LineChart {...chart} plot={plot} />
      {expanded && (
        <ExpandedLineChart chart={chart} zoomed={zoomed} controls={controls} onClose={() => expand(false)} />
      )}
    </>
  );
}

/** The room for title and legend in a window that one chart fills. */
const EXPANDED_REST_PX = 260;
const LEAST_EXPANDED_PX = 220;

interface ExpandedProps {
  label: string;
  onClose: () => void;
  /** Returns what the head has before the button that closes the window. */
  head?: (dialog: RefObject<HTMLDialogElement | null>) => ReactNode;
  /** Returns the chart, in this height. */
  children: (height: number) => ReactNode;
}

/** A window with one chart. */
export function ExpandedChart({ label, onClose, head, children }: ExpandedProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="expanded-chart" aria-label={label} onClose={onClose}>
      <ChartHead title={label}>
        {head?.(dialog)}
        <IconButton name={t("Close")} icon={<CloseOutlined />} onClick={() => dialog.current?.close()} />
      </ChartHead>
      {children(Math.max(LEAST_EXPANDED_PX, window.innerHeight - EXPANDED_REST_PX))}
    </dialog>
  );
}

function ExpandedLineChart({
  chart,
  zoomed,
  controls,
  onClose,
}: {
  chart: LineChartProps;
  zoomed: boolean;
  controls: ReactNode;
  onClose: () => void;
}): ReactNode {
  const plot = useRef<uPlot>(null);
  return (
    <ExpandedChart
      label={chart.label}
      onClose={onClose}
      head={(dialog) => (
        <>
          {zoomed && chart.onReset && <ResetButton onReset={chart.onReset} />}
          <FileMenu chart={chart} plot={plot} within={dialog} />
        </>
      )}
    >
      {(height) => (
        <>
          <LineChart {...chart} height={height} plot={plot} tallLegend />
          {controls}
        </>
      )}
    </ExpandedChart>
  );
}

export function ExpandButton({ label, onExpand }: { label: string; onExpand: () => void }): ReactNode {
  return <IconButton name={t("Expand {chart}", { chart: label })} icon={<FullscreenOutlined />} onClick={onExpand} />;
}

function ResetButton({ onReset }: { onReset: () => void }): ReactNode {
  return <IconButton name={t("Show all")} icon={<UndoOutlined />} onClick={onReset} />;
}

function IconButton({ name, icon, onClick }: { name: string; icon: ReactNode; onClick?: () => void }): ReactNode {
  return <Button type="text" size="small" aria-label={name} title={name} icon={icon} {...(onClick ? { onClick } : {})} />;
}

export interface PictureMenuProps {
  label: string;
  pictures: { svg: string; png: string };
  /** Returns the table of the values that are shown, its column names first. */
  toRows: () => (string | number)[][];
}

/** A menu of pictures that the server draws, each with its address, and of the values as CSV. */
export function PictureMenu({ label, pictures, toRows }: PictureMenuProps): ReactNode {
  const ofServer = (["png", "svg"] as const).map((kind) => ({
    key: kind,
    label: (
      <a href={pictures[kind]} target="_blank" rel="noopener noreferrer">
        {kind === "png" ? t("Open as PNG") : t("Open as SVG")}
      </a>
    ),
  }));
  const download = async (): Promise<void> => (await import("./chartFiles")).saveRows(label, toRows());
  const items = [{ key: "csv", label: t("Download as CSV"), onClick: () => void download() }, ...ofServer];
  return (
    <Dropdown trigger={["click"]} menu={{ items }}>
      <MenuButton label={label} />
    </Dropdown>
  );
}

function MenuButton({ label, ...handlers }: { label: string }): ReactNode {
  return (
    <Button
      type="text"
      size="small"
      {...handlers}
      aria-label={t("Files of {chart}", { chart: label })}
      title={t("Download")}
      icon={<MoreOutlined />}
    />
  );
}

interface FileMenuProps {
  chart: LineChartProps;
  plot: { current: uPlot | null };
  /** The dialog that the menu belongs to: only what is inside it can be clicked. */
  within?: { current: HTMLElement | null };
}

function FileMenu({ chart, plot, within }: FileMenuProps): ReactNode {
  const dark = useDarkMode();
  const download = async (kind: "csv" | "png" | "svg"): Promise<void> => {
    const files = await import("./chartFiles");
    if (kind === "csv") files.saveCsv(chart);
    else if (plot.current) await files.savePicture(kind, chart, plot.current, dark);
  };
  return (
    <Dropdown
      trigger={["click"]}
      getPopupContainer={() => within?.current ?? document.body}
      menu={{
        items: [
          { key: "csv", label: t("Download as CSV") },
          { key: "png", label: t("Download as PNG") },
          { key: "svg", label: t("Download as SVG") },
        ],
        onClick: ({ key }) => void download(key as "csv" | "png" | "svg"),
      }}
    >
      <MenuButton label={chart.label} />
    </Dropdown>
  );
}
