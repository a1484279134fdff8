// Something is asked of the master; its answer, or why not, is said in one line.

import { message } from "antd";
import { useState } from "react";
import type { ActionAnswer, ActionName, ActionWords } from "../api";
import { act } from "../client";
import { say } from "../language";

interface Action<A extends ActionName> {
  busy: boolean;
  run: (words?: Partial<ActionWords<A>>) => Promise<ActionAnswer<A> | undefined>;
}

export function useAction<A extends ActionName>(job: string, name: A, done: string): Action<A> {
  const [busy, setBusy] = useState(false);
  const run = async (words?: Partial<ActionWords<A>>): Promise<ActionAnswer<A> | undefined> => {
    setBusy(true);
    try {
      const answer = await act(job, name, words);
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
