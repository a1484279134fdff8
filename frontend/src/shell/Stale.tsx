import type { ReactNode } from "react";
import { time } from "../format";
import { say } from "../language";
import type { Polled } from "../polling";

/** Says since when what is shown is old, and why; nothing while answers come. */
export function Stale({ polled, ended = false }: { polled: Polled<unknown>; ended?: boolean }): ReactNode {
  const { error, at } = polled;
  if (!error) return null;
  const values = { time: time(at), error: error.message };
  const text = ended
    ? say("The job has ended and its master with it. What is here was read at {time}.", values)
    : say("No answer since {time}: {error}", values);
  return (
    <div className="stale" role="status">
      {text}
    </div>
  );
}
