// Whether the token that came with the link still lets one change the job.

import { useEffect, useState } from "react";
import { apiPutAction, ApiError } from "../apiClient";
import { getActionToken } from "../tokens";

export type ActionPermission = "yes" | "no" | "expired";

/** Asked when the page opens; the server decides anew at each change. */
export function useActionPermission(job: string, ended: boolean): ActionPermission {
  const [permission, setPermission] = useState<ActionPermission>(getActionToken() ? "yes" : "no");
  useEffect(() => {
    if (!getActionToken() || ended) return;
    apiPutAction(job, "check").catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 403) setPermission("expired");
    });
  }, [job, ended]);
  return permission;
}
