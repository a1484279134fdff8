// Chooses a run and one of its tags. The choice is kept in the address.

import { Select } from "antd";
import type { ReactNode } from "react";
import type { EventRun } from "../api";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";

interface TagSelection {
  run: string;
  tag: string;
  picker: ReactNode;
}

/** What a view of one tag of a run gets; `seconds` is the time between two polls. */
export interface TagProps {
  job: string;
  run: string;
  tag: string;
  seconds: number;
}

/** `tagsOf` returns the tags of a run to choose from. Runs without such tags are left out. */
export function useTagPicker(runs: EventRun[], tagsOf: (run: EventRun) => string[]): TagSelection {
  const { query } = useRoute();
  const runsWithTags = runs.filter((run) => tagsOf(run).length);
  const run = runsWithTags.find((each) => each.run === query.get("run")) ?? runsWithTags[0];
  const tags = run ? tagsOf(run) : [];
  const tag = tags.find((each) => each === query.get("tag")) ?? tags[0] ?? "";
  const picker = (
    <div className="row" style={{ marginBottom: 10 }}>
      <Select
        showSearch
        aria-label={t("Run")}
        value={run?.run}
        options={runsWithTags.map((each) => ({ value: each.run, label: each.run }))}
        onChange={(value) => updateQuery({ run: value })}
        style={{ minWidth: 220 }}
      />
      <Select
        showSearch
        aria-label={t("Tag")}
        value={tag}
        options={tags.map((value) => ({ value, label: value }))}
        onChange={(value) => updateQuery({ tag: value })}
        style={{ minWidth: 320 }}
      />
    </div>
  );
  return { run: run?.run ?? "", tag, picker };
}
