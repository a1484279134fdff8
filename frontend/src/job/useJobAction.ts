// Runs an action on a job and shows its outcome, or the error, in a message.

import { message } from "antd";
import { useState } from "react";
import type { ActionResponse, ActionName, ActionBody } from "../api";
import { apiPutAction } from "../apiClient";
import { t } from "../language";

interface JobAction<A extends ActionName> {
  pending: boolean;
  run: (body?: Partial<ActionBody<A>>) => Promise<ActionResponse<A> | undefined>;
}

export function useJobAction<A extends ActionName>(job: string, name: A, successMessage: string): JobAction<A> {
  const [pending, setPending] = useState(false);
  const run = async (body?: Partial<ActionBody<A>>): Promise<ActionResponse<A> | undefined> => {
    setPending(true);
    try {
      const response = await apiPutAction(job, name, body);
      if (successMessage) void message.success(successMessage);
      return response;
    } catch (error) {
      void message.error(t("Refused: {error}", { error: (error as Error).message }), 8);
      return undefined;
    } finally {
      setPending(false);
    }
  };
  return { pending, run };
}
