// The keys of a record of the spec that are set, and the defaults of those that are not.

import { t } from "../language";

export interface SpecField {
  /** The key, with those of the records around it: `timeouts.stop`. */
  path: string;
  value: string;
}

/** Records whose defaults say nothing unless one of their keys is set. */
const OPTIONAL_RECORDS = /^(checkpoint|board|preflight|master|deadline|placement|save)\./;

/** Keys whose 0 means that there is no limit. */
const NO_LIMIT = /^(timeouts\.(gang|localise|run|stall|total)|deadline\.within|save\.keep)$/;

/** Returns what is set in a record, without the keys in `leaveOut`. */
export function setFields(record: Record<string, unknown>, leaveOut: string[] = []): SpecField[] {
  return Object.entries(record).flatMap(([key, value]) => (leaveOut.includes(key) ? [] : flatten(key, value)));
}

function flatten(path: string, value: unknown): SpecField[] {
  if (Array.isArray(value) && !value.some(isRecord)) return [{ path, value: value.map((each) => asText(each)).join("\n") }];
  if (value === null || typeof value !== "object") return [{ path, value: asText(value, path) }];
  return Object.entries(value).flatMap(([key, each]) => flatten(`${path}.${key}`, each));
}

function isRecord(value: unknown): boolean {
  return value !== null && typeof value === "object";
}

function asText(value: unknown, path = ""): string {
  if (value === 0 && NO_LIMIT.test(path)) return t("no limit");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the defaults that hold in a record, without the keys in `leaveOut`. */
export function defaultFields(
  record: Record<string, unknown>,
  defaults: Record<string, unknown>,
  leaveOut: string[] = [],
): SpecField[] {
  const given = setFields(record).map(({ path }) => path);
  return Object.entries(defaults)
    .filter(([path]) => {
      const [key = ""] = path.split(".", 1);
      const applies = !OPTIONAL_RECORDS.test(path) || key in record;
      return applies && !given.includes(path) && !leaveOut.includes(key);
    })
    .map(([path, value]) => ({ path, value: asText(value, path) }));
}
