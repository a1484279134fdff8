import type { ReactNode } from "react";
import type { Job, Role } from "../api";
import { formatMib } from "../format";
import { t } from "../language";
import { href } from "../router";
import { countStates, StateCounts } from "./StateCounts";

export function RoleTable({ job }: { job: Job }): ReactNode {
  return (
    <table className="small roles">
      <thead>
        <tr>
          <th scope="col">{t("Role")}</th>
          <th scope="col" className="align-end">
            {t("Tasks")}
          </th>
          <th scope="col">{t("State")}</th>
          <th scope="col">{t("Per task")}</th>
        </tr>
      </thead>
      <tbody>
        {job.roles.map((role) => (
          <tr key={role.name}>
            <td className="anywhere">
              <a href={href(["jobs", job.id, "tasks"], { role: role.name })}>{role.name}</a>
            </td>
            <td className="align-end">{role.replicas}</td>
            <td>
              <StateCounts counts={countStates([role])} />
            </td>
            <td>{describeResources(role)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function describeResources(role: Role): string {
  const { memory_mib, vcores, gpus } = role.resources;
  return [
    formatMib(Number(memory_mib)),
    vcores ? t("{count} CPU", { count: Number(vcores) }) : "",
    gpus ? t("{count} GPU", { count: Number(gpus) }) : "",
  ]
    .filter(Boolean)
    .join(", ");
}
