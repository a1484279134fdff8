// Charts other than lines, with the parts of ECharts that are used. Tooltips are drawn on the canvas, never as HTML.

import { BarChart, CustomChart } from "echarts/charts";
import { GridComponent, TooltipComponent } from "echarts/components";
import { init, use as withParts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { type ReactNode, useEffect, useRef } from "react";
import { useDarkMode, cssVariables } from "../theme";

withParts([
  BarChart,
  CustomChart,
  GridComponent,
  TooltipComponent,
  CanvasRenderer,
]);

interface Props {
  label: string;
  option: object;
  height: number;
  onItemClick?: (name: string) => void;
}

export default function EChart({ label, option, height, onItemClick }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const dark = useDarkMode();
  const chart = useRef<ReturnType<typeof init>>(null);
  const onClick = useRef(onItemClick);
  onClick.current = onItemClick;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const created = init(element, null, { renderer: "canvas" });
    chart.current = created;
    created.on("click", (event) => onClick.current?.(event.name));
    const observer = new ResizeObserver(() => created.resize());
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => {
    const colours = cssVariables(dark);
    chart.current?.setOption({
      animation: false,
      textStyle: { color: colours["--text"] },
      ...option,
      tooltip: {
        renderMode: "richText",
        backgroundColor: colours["--surface"],
        borderColor: colours["--border"],
        textStyle: { color: colours["--text"], fontSize: 12 },
        ...(option as { tooltip?: object }).tooltip,
      },
    });
  }, [option, dark]);
  return <div ref={box} role="img" aria-label={label} style={{ height }} />;
}
