// Whether the token that came with the link still lets one change the job.

import { useEffect, useState } from "react";
import { act, Refused } from "../client";
import { actToken } from "../tokens";

export type May = "yes" | "no" | "expired";

/** Asked when the page opens; the server decides anew at each change. */
export function useMayAct(job: string, ended: boolean): May {
  const [may, setMay] = useState<May>(actToken() ? "yes" : "no");
  useEffect(() => {
    if (!actToken() || ended) return;
    act(job, "check").catch((error: unknown) => {
      if (error instanceof Refused && error.status === 403) setMay("expired");
    });
  }, [job, ended]);
  return may;
}
