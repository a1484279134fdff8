// Which role's tasks are shown: kept in the address as `role`.

import { Select } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { say } from "../language";
import { amend, useRoute } from "../route";

export function RoleChoice({ job }: { job: Job }): ReactNode {
  return (
    <Select
      aria-label={say("Role")}
      value={useRoute().query.get("role") ?? ""}
      onChange={(role) => amend({ role })}
      options={[
        { value: "", label: say("All roles") },
        ...job.roles.map(({ name }) => ({ value: name, label: name })),
      ]}
      style={{ minWidth: 130 }}
    />
  );
}
