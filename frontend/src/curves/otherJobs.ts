// Runs of other jobs, to be drawn beside those of this one.

import { useEffect, useState } from "react";
import type { Runs } from "../api";
import { get, jobPath } from "../client";
import type { Chosen } from "./ScalarChart";

export function useOtherJobs(jobs: string[]): Omit<Chosen, "colour">[] {
  const [found, setFound] = useState<Omit<Chosen, "colour">[]>([]);
  const wanted = jobs.join(",");
  useEffect(() => {
    const ended = new AbortController();
    const ask = async (id: string): Promise<Omit<Chosen, "colour">[]> => {
      try {
        const { runs } = await get<Runs>(jobPath(id, "curves/runs"), {}, ended.signal);
        return runs.map(({ run, tags }) => ({ job: id, run, label: run === "." ? id : `${id} ${run}`, tags: tags.scalar ?? [] }));
      } catch {
        return [];
      }
    };
    void Promise.all(wanted.split(",").filter(Boolean).map(ask)).then((all) => {
      if (!ended.signal.aborted) setFound(all.flat());
    });
    return () => ended.abort();
  }, [wanted]);
  return found;
}
