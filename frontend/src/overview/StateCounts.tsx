// How many tasks are in which state; states without a task are left out.

import type { ReactNode } from "react";
import type { Role, TaskState } from "../api";
import { t } from "../language";

type Counts = [state: TaskState, count: number][];

export function countStates(roles: Role[]): Counts {
  const sum = (count: (role: Role) => number): number => roles.reduce((total, role) => total + count(role), 0);
  const counts: Counts = [
    ["RUNNING", sum((role) => role.running)],
    ["PENDING", sum((role) => role.pending)],
    ["FAILED", sum((role) => role.failed)],
    ["SUCCEEDED", sum((role) => role.succeeded)],
    ["STOPPED", sum((role) => role.stopped)],
    ["CANCELLED", sum((role) => role.cancelled)],
  ];
  return counts.filter(([, count]) => count > 0);
}

export function StateCounts({ counts }: { counts: Counts }): ReactNode {
  return (
    <span className="state-counts">
      {counts.map(([state, count]) => (
        <span key={state} className={`state ${state}`}>
          {count} {t(state)}
        </span>
      ))}
    </span>
  );
}
