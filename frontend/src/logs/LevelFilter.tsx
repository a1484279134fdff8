// Chooses a level of lines. Once the list is open it says how many lines of each level there are.

import { Select } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import { apiGet } from "../apiClient";
import { t } from "../language";
import { countLevels, countText, type LevelCounts } from "./countLevels";

interface Props {
  job: string;
  /** The tasks whose lines are counted; empty for all. */
  scope: string;
  level: string;
  onChange: (level: string) => void;
}

const MAX_COUNTED = 1000;

export function LevelFilter({ job, scope, level, onChange }: Props): ReactNode {
  const [open, setOpen] = useState(false);
  const counts = useLevelCounts(job, scope, open);
  const options = [
    { value: "", label: t("All levels"), count: undefined },
    { value: "warning", label: t("Warnings, errors"), count: counts?.warning },
    { value: "error", label: t("Errors"), count: counts?.error },
  ];
  return (
    <Select
      aria-label={t("Level")}
      value={level}
      options={options}
      optionRender={({ data: { label, count } }) => (
        <span className="row">
          <span className="grow">{label}</span>
          <span className="muted">{counts && count !== undefined && countText(count, counts.more)}</span>
        </span>
      )}
      onOpenChange={setOpen}
      onChange={onChange}
      popupMatchSelectWidth={false}
      style={{ width: 160 }}
    />
  );
}

/** Counts when the list is opened: a search through a long log costs something, and not everybody wants to know. */
function useLevelCounts(job: string, scope: string, open: boolean): LevelCounts | undefined {
  const [counts, setCounts] = useState<LevelCounts>();
  useEffect(() => {
    if (!open) return;
    const stopped = new AbortController();
    setCounts(undefined);
    const query = { level: "warning", task: scope, limit: MAX_COUNTED };
    apiGet("jobs/{job}/search", { job }, query, stopped.signal)
      .then((found) => setCounts(countLevels(found.hits, found.complete)))
      .catch(() => undefined); // the levels can be chosen without their counts
    return () => stopped.abort();
  }, [job, scope, open]);
  return counts;
}
