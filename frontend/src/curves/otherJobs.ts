// Curves of other jobs, to be drawn beside those of this one.

import { useEffect, useState } from "react";
import { get } from "../client";
import { type Chosen, runId } from "./ScalarChart";
import { type Told, toldOf, toldQuery } from "./told";

type Uncoloured = Omit<Chosen, "colour">;

interface Others extends Told {
  runs: Uncoloured[];
}

const NONE: Others = { runs: [], tags: [], lines: [] };

export function useOtherJobs(jobs: string[]): Others {
  const [found, setFound] = useState<Others>(NONE);
  const wanted = jobs.join(",");
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    const ids = wanted.split(",").filter(Boolean);
    const runs = Promise.all(ids.map((id) => runsOf(id, signal).catch(() => [])));
    const told = Promise.all(ids.map((id) => toldBy(id, signal).catch(() => NONE)));
    void Promise.all([runs, told]).then(([all, lines]) => {
      if (!signal.aborted) setFound({ runs: all.flat(), ...joined(lines) });
    });
    return () => ended.abort();
  }, [wanted]);
  return found;
}

async function runsOf(job: string, signal: AbortSignal): Promise<Uncoloured[]> {
  const { runs } = await get("jobs/{job}/curves/runs", { job }, {}, signal);
  return runs.map(({ run, tags }) => ({
    id: runId(job, run),
    job,
    run,
    label: run === "." ? job : `${job} ${run}`,
    tags: tags.scalar ?? [],
  }));
}

async function toldBy(id: string, signal: AbortSignal): Promise<Told> {
  const job = await get("jobs/{job}", { job: id }, {}, signal);
  return toldOf(id, await get("jobs/{job}/series", { job: id }, toldQuery(job), signal));
}

function joined(all: Told[]): Told {
  return { tags: all.flatMap(({ tags }) => tags), lines: all.flatMap(({ lines }) => lines) };
}
