// What is not a line, by ECharts: loaded when first needed, with the parts that are used. Its tips are drawn, not HTML.

import { BarChart, CustomChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use as withParts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { type ReactNode, useEffect, useRef } from "react";
import { useDark, variables } from "../theme";

withParts([BarChart, CustomChart, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

interface Props {
  label: string;
  option: object;
  height: number;
  onPick?: (name: string) => void;
}

export default function EChart({ label, option, height, onPick }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const dark = useDark();
  const chart = useRef<ReturnType<typeof init>>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  useEffect(() => {
    const place = box.current;
    if (!place) return;
    const made = init(place, null, { renderer: "canvas" });
    chart.current = made;
    made.on("click", (event) => pick.current?.(event.name));
    const watching = new ResizeObserver(() => made.resize());
    watching.observe(place);
    return () => {
      watching.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => {
    const colours = variables(dark);
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
