// Chooses the role whose tasks are shown. The choice is kept in the address as `role`.

import { Select } from "antd";
import type { ReactNode } from "react";
import type { Job } from "../api";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";

export function RoleFilter({ job }: { job: Job }): ReactNode {
  return (
    <Select
      aria-label={t("Role")}
      value={useRoute().query.get("role") ?? ""}
      onChange={(role) => updateQuery({ role })}
      options={[{ value: "", label: t("All roles") }, ...job.roles.map(({ name }) => ({ value: name, label: name }))]}
      style={{ minWidth: 130 }}
    />
  );
}
