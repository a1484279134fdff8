// One run and one of its tags, chosen in the address.

import { Select } from "antd";
import type { ReactNode } from "react";
import type { Run } from "../api";
import { say } from "../language";
import { amend, useRoute } from "../route";

export interface Picked {
  run: string;
  tag: string;
  picker: ReactNode;
}

/** `of` gives the tags of a run that are meant; runs without any are left out. */
export function usePick(runs: Run[], of: (run: Run) => string[]): Picked {
  const { query } = useRoute();
  const fitting = runs.filter((run) => of(run).length);
  const run = fitting.find((each) => each.run === query.get("run")) ?? fitting[0];
  const tags = run ? of(run) : [];
  const tag = tags.find((each) => each === query.get("tag")) ?? tags[0] ?? "";
  const picker = (
    <div className="row" style={{ marginBottom: 10 }}>
      <Select
        showSearch
        aria-label={say("Run")}
        value={run?.run}
        options={fitting.map((each) => ({ value: each.run, label: each.run }))}
        onChange={(value) => amend({ run: value })}
        style={{ minWidth: 220 }}
      />
      <Select
        showSearch
        aria-label={say("Tag")}
        value={tag}
        options={tags.map((value) => ({ value, label: value }))}
        onChange={(value) => amend({ tag: value })}
        style={{ minWidth: 320 }}
      />
    </div>
  );
  return { run: run?.run ?? "", tag, picker };
}
