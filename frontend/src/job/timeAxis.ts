// The ticks of an axis of time: at round times of the reader's clock, so far apart that their labels have room.

import { formatAxisTick } from "../format";

const DAY_S = 86_400;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY_S];
/** The pixels of "15:49:30" and a gap. */
const LABEL_WIDTH = 72;

export interface Tick {
  seconds: number;
  /** Empty where the label would reach over an end of the axis. */
  label: string;
}

/** Returns the ticks between two moments, Unix seconds, on an axis of `width` pixels. */
export function timeTicks(from: number, to: number, width: number): Tick[] {
  const most = Math.max(1, Math.floor(width / LABEL_WIDTH));
  const fitting = STEPS_S.find((step) => (to - from) / step <= most);
  const step = fitting ?? Math.ceil((to - from) / most / DAY_S) * DAY_S;
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  const margin = ((to - from) * LABEL_WIDTH) / 2 / Math.max(1, width);
  const ticks: Tick[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    const fits = at >= from + margin && at <= to - margin;
    ticks.push({ seconds: at, label: fits ? formatAxisTick(at, step) : "" });
  }
  return ticks;
}
