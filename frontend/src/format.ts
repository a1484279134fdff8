// Formats numbers and times for people.

const NO_VALUE = "–";

export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return `${value}`;
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(digits - 1);
  return `${Number(value.toPrecision(Math.max(digits, Math.trunc(size) === size ? 7 : digits)))}`;
}

/** Formats hours and the like: all whole digits, with commas between thousands, and to the hundredth below 100. */
export function formatAmount(value: number): string {
  if (value > 0 && value < 0.005) return "< 0.01";
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 });
}

export function formatMoney(value: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

export function formatBytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[at]}`;
}

export function formatMib(value: number | null | undefined): string {
  return value ? formatBytes(value * 1048576) : "";
}

export function formatPercent(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : `${Math.floor(100 * value)} %`;
}

/** Formats seconds as 4 s, 3:05, 2:03:05 or 3 d 2:03:05. */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "";
  if (seconds < 60) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const twoDigits = (value: number): string => `${value}`.padStart(2, "0");
  const [days, hours, minutes] = [
    Math.floor(whole / 86400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
  ];
  const clock =
    whole < 3600 ? `${minutes}:${twoDigits(whole % 60)}` : `${hours}:${twoDigits(minutes)}:${twoDigits(whole % 60)}`;
  return days ? `${days} d ${clock}` : clock;
}

/** Formats a time in the local time zone, with the date unless it is today. */
export function formatTime(seconds: number | null | undefined): string {
  if (!seconds) return NO_VALUE;
  const when = new Date(seconds * 1000);
  const clock = formatClock(seconds);
  return when.toDateString() === new Date().toDateString() ? clock : `${formatDate(seconds)} ${clock}`;
}

/** Formats the time of day in the local time zone. */
export function formatClock(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 8);
}

/** Formats a time in the local time zone, always with its date. */
export function formatDateTime(seconds: number | null | undefined): string {
  return seconds ? `${formatDate(seconds)} ${new Date(seconds * 1000).toTimeString().slice(0, 8)}` : NO_VALUE;
}

/** Formats a tick of a time axis whose ticks are `step` seconds apart. */
export function formatAxisTick(seconds: number, step: number): string {
  if (step >= 86400) return formatDate(seconds).slice(5);
  const clock = new Date(seconds * 1000).toTimeString();
  return clock.slice(0, step < 60 ? 8 : 5);
}

function formatDate(seconds: number): string {
  const when = new Date(seconds * 1000);
  const twoDigits = (value: number): string => `${value}`.padStart(2, "0");
  return `${when.getFullYear()}-${twoDigits(when.getMonth() + 1)}-${twoDigits(when.getDate())}`;
}

export function formatElapsed(started: number, finished: number): string {
  return started ? formatDuration((finished || Date.now() / 1000) - started) : "";
}

/** Formats any JSON value as one line. */
export function toPlainText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined ? "" : JSON.stringify(value);
}
