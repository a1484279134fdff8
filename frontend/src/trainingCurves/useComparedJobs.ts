// Fetches the runs and metrics of other jobs, to draw them in the charts of this job.

import { useEffect, useState } from "react";
import { apiGet } from "../apiClient";
import { describeJobs } from "./lineNames";
import { type ProgramMetrics, toProgramMetrics, programMetricsQuery } from "./programMetrics";
import { type ChartRun, runId } from "./ScalarChart";

type ComparedRun = Pick<ChartRun, "id" | "job" | "run" | "tags">;

interface ComparedJobs extends ProgramMetrics {
  runs: ComparedRun[];
  /** The names of all jobs by their ids, this one's too. */
  jobNames: Map<string, string>;
}

const NO_JOBS: ComparedJobs = { runs: [], names: [], series: [], jobNames: new Map() };

/** `job` is the id of the job that the others are compared with. */
export function useComparedJobs(job: string, jobs: string[]): ComparedJobs {
  const [jobData, setJobData] = useState<ComparedJobs>(NO_JOBS);
  const jobIds = jobs.join(",");
  useEffect(() => {
    const stopped = new AbortController();
    const { signal } = stopped;
    const ids = jobIds.split(",").filter(Boolean);
    const runs = Promise.all(ids.map((id) => fetchRuns(id, signal).catch(() => [])));
    const metrics = Promise.all(ids.map((id) => fetchProgramMetrics(id, signal).catch(() => NO_JOBS)));
    const names = ids.length ? fetchNames([job, ...ids], signal).catch(() => NO_JOBS.jobNames) : NO_JOBS.jobNames;
    void Promise.all([runs, metrics, names]).then(([all, lines, jobNames]) => {
      if (!signal.aborted) setJobData({ runs: all.flat(), ...joinMetrics(lines), jobNames });
    });
    return () => stopped.abort();
  }, [job, jobIds]);
  return jobData;
}

async function fetchRuns(job: string, signal: AbortSignal): Promise<ComparedRun[]> {
  const { runs } = await apiGet("jobs/{job}/curves/runs", { job }, {}, signal);
  return runs.map(({ run, tags }) => ({
    id: runId(job, run),
    job,
    run,
    tags: tags.scalar ?? [],
  }));
}

async function fetchNames(ids: string[], signal: AbortSignal): Promise<Map<string, string>> {
  const { jobs } = await apiGet("compare", {}, { jobs: ids.join(",") }, signal);
  return describeJobs(jobs);
}

async function fetchProgramMetrics(id: string, signal: AbortSignal): Promise<ProgramMetrics> {
  const job = await apiGet("jobs/{job}", { job: id }, {}, signal);
  return toProgramMetrics(id, await apiGet("jobs/{job}/series", { job: id }, programMetricsQuery(job), signal));
}

function joinMetrics(all: ProgramMetrics[]): ProgramMetrics {
  return { names: all.flatMap(({ names }) => names), series: all.flatMap(({ series }) => series) };
}
