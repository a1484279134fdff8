// Chooses a run and one of its tags, and shows the tag. The choice is kept in the address.

import { Select } from "antd";
import type { ComponentType, ReactNode } from "react";
import type { EventRun } from "../api";
import { EmptyState } from "../components/EmptyState";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";

/** What a view of one kind of tags gets; `seconds` is the time between two polls. */
export interface CurveProps {
  job: string;
  runs: EventRun[];
  seconds: number;
}

/** What a view of one tag of a run gets. */
export interface TagProps extends Omit<CurveProps, "runs"> {
  run: string;
  tag: string;
}

interface Props extends CurveProps {
  /** Returns the tags of a run to choose from. Runs without such tags are left out. */
  tagsOf: (run: EventRun) => string[];
  /** What is said where no run has such a tag. */
  nothing: string;
  View: ComponentType<TagProps>;
}

export function TagPicker({ job, runs, seconds, tagsOf, nothing, View }: Props): ReactNode {
  const { query } = useRoute();
  const runsWithTags = runs.filter((each) => tagsOf(each).length);
  const run = runsWithTags.find((each) => each.run === query.get("run")) ?? runsWithTags[0];
  if (!run) return <EmptyState text={nothing} />;
  const tags = tagsOf(run);
  const tag = tags.find((each) => each === query.get("tag")) ?? tags[0] ?? "";
  return (
    <>
      <div className="row" style={{ marginBottom: 10 }}>
        <Select
          showSearch
          aria-label={t("Run")}
          value={run.run}
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
      <View key={`${run.run} ${tag}`} job={job} run={run.run} tag={tag} seconds={seconds} />
    </>
  );
}
