// Curves: runs × tags. How they are shown is in the address, so that a view can be sent to somebody.

import type { ReactNode } from "react";
import type { Job, Run } from "../api";
import { hasEnded } from "../job/jobState";
import { say } from "../language";
import { useRoute } from "../route";
import { Nothing } from "../shell/Nothing";
import { Controls } from "./Controls";
import { useOtherJobs } from "./otherJobs";
import { type Chosen, runId, ScalarChart } from "./ScalarChart";
import { readSettings } from "./settings";
import { ToldCharts } from "./ToldCharts";
import { tellersOf, useTold } from "./told";

interface Props {
  job: Job;
  runs: Run[];
  seconds: number;
  others: boolean;
  /** Why the runs are not known yet. */
  waits?: string;
}

export function Scalars({ job, runs, seconds, others, waits = "" }: Props): ReactNode {
  const settings = readSettings(useRoute().query);
  const compared = others ? [...new Set(settings.with)].filter((id) => id !== job.id) : [];
  const beside = useOtherJobs(compared);
  const own: Chosen[] = runs.map((run, index) => ({
    id: runId(job.id, run.run),
    job: job.id,
    run: run.run,
    label: labelOf(run.run, job, runs),
    colour: index,
    tags: run.tags.scalar ?? [],
  }));
  const all = [...own, ...beside.runs.map((each, index) => ({ ...each, colour: own.length + index }))];
  const shown = all.filter(({ id }) => !settings.hidden.includes(id));
  const tags = sorted(
    shown.flatMap((each) => each.tags),
    settings.tag,
  );
  const told = useTold(job, hasEnded(job) ? 0 : 3);
  const lines = [...told.lines, ...beside.lines];
  const tellers = tellersOf(lines, all.length, compared.length > 0);
  const heard = tellers.filter(({ id }) => !settings.hidden.includes(id));
  const names = sorted([...told.tags, ...beside.tags], settings.tag);
  return (
    <div className="split">
      <Controls runs={all} tellers={tellers} settings={settings} others={others} />
      <div>
        {told.error && <p className="bad">{told.error}</p>}
        {waits && <Nothing text={waits} />}
        {!waits && !tags.length && !names.length && (
          <Nothing text={say("No curves yet. They come from TensorBoard's event files and from howdah.here.metric.")} />
        )}
        {groups(tags).map(([group, inside]) => (
          <section key={group}>
            {group && <h2 style={{ fontSize: 14, margin: "8px 0" }}>{group}</h2>}
            <div className="charts">
              {inside.map((tag) => (
                <ScalarChart
                  key={tag}
                  tag={tag}
                  runs={shown.filter((each) => each.tags.includes(tag))}
                  settings={settings}
                  seconds={seconds}
                />
              ))}
            </div>
          </section>
        ))}
        <ToldCharts lines={lines} tags={names} tellers={heard} settings={settings} />
      </div>
    </div>
  );
}

/** The run without a folder of its own is the job itself. */
function labelOf(run: string, job: Job, runs: Run[]): string {
  return run === "." && job.name && !runs.some((each) => each.run === job.name) ? job.name : run;
}

/** Those that fit the pattern, each once. */
function sorted(tags: string[], pattern: string): string[] {
  return [...new Set(tags)].filter((tag) => fits(tag, pattern)).sort(byPlace);
}

function fits(tag: string, sought: string): boolean {
  if (!sought) return true;
  try {
    return new RegExp(sought, "i").test(tag);
  } catch {
    return tag.toLowerCase().includes(sought.toLowerCase());
  }
}

function byPlace(a: string, b: string): number {
  return a.localeCompare(b, undefined, { numeric: true });
}

/** Tags by what is before their first slash. */
function groups(tags: string[]): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const tag of tags) {
    const group = tag.includes("/") ? (tag.split("/")[0] as string) : "";
    found.set(group, [...(found.get(group) ?? []), tag]);
  }
  return [...found];
}
