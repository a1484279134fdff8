// Something is asked of the master; its answer, or why not, is said in one line.

import { message } from "antd";
import { useState } from "react";
import { act } from "../client";
import { say } from "../language";

interface Action<T> {
  busy: boolean;
  run: (body?: Record<string, unknown>) => Promise<T | undefined>;
}

export function useAction<T = unknown>(job: string, name: string, done: string): Action<T> {
  const [busy, setBusy] = useState(false);
  const run = async (body: Record<string, unknown> = {}): Promise<T | undefined> => {
    setBusy(true);
    try {
      const answer = await act<T>(job, name, body);
      if (done) void message.success(done);
      return answer;
    } catch (error) {
      void message.error(say("Refused: {error}", { error: (error as Error).message }), 8);
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  return { busy, run };
}
