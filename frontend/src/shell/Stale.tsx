import type { ReactNode } from "react";
import { time } from "../format";
import { say } from "../language";
import type { Polled } from "../polling";

/** Says since when what is shown is old, and why; nothing while answers come. */
export function Stale({ polled }: { polled: Polled<unknown> }): ReactNode {
  const { error, at } = polled;
  if (!error) return null;
  return (
    <div className="stale" role="status">
      {say("No answer since {time}: {error}", { time: time(at), error: error.message })}
    </div>
  );
}
