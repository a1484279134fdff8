// Finds out whether the token of the link still permits changes to the job.

import { useEffect, useState } from "react";
import { apiPutAction, ApiError } from "../apiClient";
import { getActionToken } from "../tokens";

type ActionPermission = "yes" | "no" | "expired";

/** Asks the server once, when the page opens. The server checks the token again at each action. */
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
