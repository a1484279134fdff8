// The filters of the list of jobs. Their values are kept in the address.

import { Button, Input, Select } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";

export const FILTER_NAMES = ["text", "user", "queue", "tag", "name", "state", "framework", "engine", "archived"] as const;

const NO_FILTERS = Object.fromEntries([...FILTER_NAMES, "from", "to", "pages"].map((name) => [name, ""]));
const STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];
const TYPING_PAUSE_MS = 300;

export function JobFilters(): ReactNode {
  const { query } = useRoute();
  const setFilter = (name: string, value: string): void => updateQuery({ [name]: value, pages: "" }, true);
  return (
    <div className="row filters" style={{ marginBottom: 8 }}>
      <TextFilter name="text" label={t("Search")} width={150} onChange={setFilter} />
      <TextFilter name="name" label={t("Name")} width={120} onChange={setFilter} />
      <TextFilter name="user" label={t("User")} width={110} onChange={setFilter} />
      <TextFilter name="queue" label={t("Queue")} width={110} onChange={setFilter} />
      <TextFilter name="tag" label={t("Tag")} width={110} onChange={setFilter} />
      <TextFilter name="framework" label={t("Framework")} width={120} onChange={setFilter} />
      <TextFilter name="engine" label={t("Engine")} width={110} onChange={setFilter} />
      <Select
        aria-label={t("State")}
        value={query.get("state") ?? ""}
        options={[{ value: "", label: t("All states") }, ...STATES.map((value) => ({ value, label: t(value) }))]}
        onChange={(value) => setFilter("state", value)}
        style={{ width: 130 }}
      />
      <Select
        aria-label={t("Archived jobs")}
        value={query.get("archived") ?? ""}
        options={[
          { value: "", label: t("Without archived jobs") },
          { value: "also", label: t("With archived jobs") },
          { value: "only", label: t("Archived jobs only") },
        ]}
        onChange={(value) => setFilter("archived", value)}
        style={{ minWidth: 150 }}
      />
      <DateRangeFilter onChange={setFilter} />
      <Button onClick={() => updateQuery(NO_FILTERS, true)}>{t("Clear")}</Button>
    </div>
  );
}

/** The first and the last day, chosen with the browser's own date picker. */
export function DateRangeFilter({ onChange }: { onChange: (name: string, value: string) => void }): ReactNode {
  return (
    <span style={{ display: "flex", gap: 8 }}>
      <TextFilter type="date" name="from" label={t("From")} width={140} onChange={onChange} />
      <TextFilter type="date" name="to" label={t("To")} width={140} onChange={onChange} />
    </span>
  );
}

interface TextFilterProps {
  name: string;
  label: string;
  width: number;
  type?: "text" | "date";
  onChange: (name: string, value: string) => void;
}

/** Applies the filter once typing has paused. */
function TextFilter({ name, label, width, type = "text", onChange }: TextFilterProps): ReactNode {
  const applied = useRoute().query.get(name) ?? "";
  const [typed, setTyped] = useState(applied);
  useEffect(() => setTyped(applied), [applied]);
  useEffect(() => {
    if (typed === applied) return;
    const timer = window.setTimeout(() => onChange(name, typed), TYPING_PAUSE_MS);
    return () => window.clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only typing restarts the timer
  }, [typed]);
  return (
    <Input
      allowClear={type === "text"}
      type={type}
      aria-label={label}
      placeholder={label}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      style={{ width }}
    />
  );
}

/** Converts a date to Unix seconds: the beginning of the day, or its end. */
export function dateToEpochSeconds(day: string | null, end: boolean): number | "" {
  if (!day) return "";
  const found = new Date(`${day}T${end ? "23:59:59" : "00:00:00"}`).getTime() / 1000;
  return Number.isFinite(found) ? found : "";
}
