// Fetches the runs and metrics of other jobs, to draw them in the charts of this job.

import { useEffect, useState } from "react";
import { apiGet } from "../apiClient";
import { type ProgramMetrics, toProgramMetrics, programMetricsQuery } from "./programMetrics";
import { type ChartRun, runId } from "./ScalarChart";

type ComparedRun = Omit<ChartRun, "colour">;

interface ComparedJobs extends ProgramMetrics {
  runs: ComparedRun[];
}

const NO_JOBS: ComparedJobs = { runs: [], names: [], series: [] };

export function useComparedJobs(jobs: string[]): ComparedJobs {
  const [jobData, setJobData] = useState<ComparedJobs>(NO_JOBS);
  const jobIds = jobs.join(",");
  useEffect(() => {
    const stopped = new AbortController();
    const { signal } = stopped;
    const ids = jobIds.split(",").filter(Boolean);
    const runs = Promise.all(ids.map((id) => fetchRuns(id, signal).catch(() => [])));
    const metrics = Promise.all(ids.map((id) => fetchProgramMetrics(id, signal).catch(() => NO_JOBS)));
    void Promise.all([runs, metrics]).then(([all, lines]) => {
      if (!signal.aborted) setJobData({ runs: all.flat(), ...joinMetrics(lines) });
    });
    return () => stopped.abort();
  }, [jobIds]);
  return jobData;
}

async function fetchRuns(job: string, signal: AbortSignal): Promise<ComparedRun[]> {
  const { runs } = await apiGet("jobs/{job}/curves/runs", { job }, {}, signal);
  return runs.map(({ run, tags }) => ({
    id: runId(job, run),
    job,
    run,
    label: run === "." ? job : `${job} ${run}`,
    tags: tags.scalar ?? [],
  }));
}

async function fetchProgramMetrics(id: string, signal: AbortSignal): Promise<ProgramMetrics> {
  const job = await apiGet("jobs/{job}", { job: id }, {}, signal);
  return toProgramMetrics(id, await apiGet("jobs/{job}/series", { job: id }, programMetricsQuery(job), signal));
}

function joinMetrics(all: ProgramMetrics[]): ProgramMetrics {
  return { names: all.flatMap(({ names }) => names), series: all.flatMap(({ series }) => series) };
}
