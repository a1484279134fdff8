// Charts of scalars by tag, and of the metrics that programs report. The address holds all settings of the view.

import type { ReactNode } from "react";
import type { Job, EventRun } from "../api";
import { EmptyState } from "../components/EmptyState";
import { hasEnded } from "../job/jobState";
import { t } from "../language";
import { useRoute } from "../router";
import { ChartControls } from "./ChartControls";
import { readChartSettings } from "./chartSettings";
import { differingParts } from "./lineNames";
import { ProgramMetricCharts } from "./ProgramMetricCharts";
import { listMetricTasks, useProgramMetrics } from "./programMetrics";
import { type ChartRun, runId, ScalarChart } from "./ScalarChart";
import { useComparedJobs } from "./useComparedJobs";

interface Props {
  job: Job;
  runs: EventRun[];
  seconds: number;
  canCompare: boolean;
  /** Says why the runs are not known yet. */
  waitMessage?: string;
}

export function ScalarCharts({ job, runs, seconds, canCompare, waitMessage = "" }: Props): ReactNode {
  const settings = readChartSettings(useRoute().query);
  const comparedIds = canCompare ? [...new Set(settings.with)].filter((id) => id !== job.id) : [];
  const comparedJobs = useComparedJobs(job.id, comparedIds);
  const compared = comparedIds.length > 0;
  const colourBy = settings.colourBy ?? (compared ? "job" : "run");
  const jobNames = comparedJobs.jobNames;
  const allRuns = styleRuns(
    [...runs.map((run) => ({ id: runId(job.id, run.run), job: job.id, run: run.run, tags: run.tags.scalar ?? [] })), ...comparedJobs.runs],
    { own: job, jobIds: [job.id, ...comparedIds], jobNames, colourBy },
  );
  const visibleRuns = allRuns.filter(({ id }) => !settings.hidden.includes(id));
  const tags = matchingTags(
    visibleRuns.flatMap((each) => each.tags),
    settings.tag,
  );
  const programMetrics = useProgramMetrics(job, hasEnded(job) ? 0 : 3);
  const metricSeries = [...programMetrics.series, ...comparedJobs.series];
  const metricTasks = listMetricTasks(
    metricSeries,
    colourBy === "job" ? 0 : allRuns.length,
    compared ? namedJobs([job.id, ...comparedIds], jobNames, colourBy) : undefined,
  );
  const visibleMetricTasks = metricTasks.filter(({ id }) => !settings.hidden.includes(id));
  const metricNames = matchingTags([...programMetrics.names, ...comparedJobs.names], settings.tag);
  return (
    <div className="with-sidebar">
      <ChartControls
        runs={allRuns}
        metricTasks={metricTasks}
        settings={settings}
        canCompare={canCompare}
        colourBy={compared ? colourBy : undefined}
        jobNames={jobNames}
      />
      <div>
        {programMetrics.error && <p className="bad">{programMetrics.error}</p>}
        {waitMessage && <EmptyState text={waitMessage} />}
        {!waitMessage && !tags.length && !metricNames.length && (
          <EmptyState
            text={t(
              "No scalars yet. They come from TensorBoard event files and from metrics that a program reports with howdah.here.metric.",
            )}
          />
        )}
        {groupTags(tags).map(([group, inside]) => (
          <section key={group}>
            {group && <h2 style={{ fontSize: 14, margin: "8px 0" }}>{group}</h2>}
            <div className="charts">
              {inside.map((tag) => (
                <ScalarChart
                  key={tag}
                  tag={tag}
                  runs={visibleRuns.filter((each) => each.tags.includes(tag))}
                  settings={settings}
                  jobNames={jobNames}
                  seconds={seconds}
                />
              ))}
            </div>
          </section>
        ))}
        <ProgramMetricCharts
          series={metricSeries}
          names={metricNames}
          tasks={visibleMetricTasks}
          settings={settings}
          jobNames={jobNames}
        />
      </div>
    </div>
  );
}

interface Naming {
  own: Job;
  jobIds: string[];
  jobNames: Map<string, string>;
  colourBy: "run" | "job";
}

/** Gives each run a label, which says what differs from the other runs, and a colour of its own or its job's. */
function styleRuns(
  runs: Pick<ChartRun, "id" | "job" | "run" | "tags">[],
  { own, jobIds, jobNames, colourBy }: Naming,
): ChartRun[] {
  return jobIds.flatMap((job) => {
    const members = runs.filter((run) => run.job === job);
    const parts = differingParts(members.map(({ run }) => run));
    const jobName = jobIds.length > 1 ? (jobNames.get(job) ?? job) : "";
    return members.map((run, index): ChartRun => {
      const part = run.run === "." ? (jobName ? "" : rootLabel(own, members)) : (parts[index] as string);
      return {
        ...run,
        label: [jobName, part].filter(Boolean).join(" · "),
        colour: colourBy === "job" ? jobIds.indexOf(job) : runs.indexOf(run),
        dash: colourBy === "job" ? index : 0,
      };
    });
  });
}

/** Returns the label of the run without a directory of its own: the job's name, unless another run has it. */
function rootLabel(job: Job, runs: { run: string }[]): string {
  return job.name && !runs.some(({ run }) => run === job.name) ? job.name : ".";
}

function namedJobs(
  ids: string[],
  names: Map<string, string>,
  colourBy: "run" | "job",
): Map<string, { name: string; colour?: number }> {
  return new Map(
    ids.map((id, colour) => [id, { name: names.get(id) ?? id, ...(colourBy === "job" ? { colour } : {}) }]),
  );
}

/** Returns the sorted tags that match the pattern, each once. */
function matchingTags(tags: string[], pattern: string): string[] {
  return [...new Set(tags)].filter((tag) => matchesPattern(tag, pattern)).sort(compareNumerically);
}

function matchesPattern(tag: string, pattern: string): boolean {
  if (!pattern) return true;
  try {
    return new RegExp(pattern, "i").test(tag);
  } catch {
    return tag.toLowerCase().includes(pattern.toLowerCase());
  }
}

function compareNumerically(a: string, b: string): number {
  return a.localeCompare(b, undefined, { numeric: true });
}

/** Groups tags by the text before their first slash. */
function groupTags(tags: string[]): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const tag of tags) {
    const group = tag.includes("/") ? (tag.split("/")[0] as string) : "";
    found.set(group, [...(found.get(group) ?? []), tag]);
  }
  return [...found];
}
