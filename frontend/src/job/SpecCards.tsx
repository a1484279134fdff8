// The resolved spec as cards: roles, data, environment, and all other keys that are set. Defaults are grey.

import type { ReactNode } from "react";
import defaults from "../../generated/defaults.json";
import type { Job } from "../api";
import { t } from "../language";
import { formatCommand } from "../overview/resolvedSpec";
import { PackageList, SubmissionCard } from "./SubmissionCards";
import { defaultFields, setFields } from "./specFields";

type SpecRecord = Record<string, unknown>;

const ROLE_COLUMNS = ["replicas", "resources", "command"];
const DATA_KEYS = ["inputs", "outputs", "checkpoint", "board"];
const ENVIRONMENT_KEYS = ["environment", "env", "extend", "secrets", "files", "archives", "directories"];

/** `children` follow the roles. */
export function SpecCards({ job, children }: { job: Job; children: ReactNode }): ReactNode {
  const spec: SpecRecord = job.resolved;
  const others = ["roles", ...DATA_KEYS, ...ENVIRONMENT_KEYS];
  const environment = pick(spec, ENVIRONMENT_KEYS);
  return (
    <div className="cards">
      <section className="card" style={{ flexBasis: "100%" }}>
        <h2>{t("Roles")}</h2>
        <RoleCards roles={(spec.roles ?? {}) as Record<string, SpecRecord>} />
      </section>
      {children}
      <DataCard spec={spec} />
      <section className="card">
        <h2>{t("Environment")}</h2>
        <SpecFields record={environment} defaults={{}} />
        {Object.keys(environment).length === 0 && <p className="muted note">{t("Nothing but what the nodes have.")}</p>}
        <PackageList job={job} />
      </section>
      <section className="card">
        <h2>{t("Job")}</h2>
        <SpecFields record={spec} defaults={defaults.job} leaveOut={others} />
      </section>
      <SubmissionCard job={job} />
    </div>
  );
}

function RoleCards({ roles }: { roles: Record<string, SpecRecord> }): ReactNode {
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={t("Roles")}>
      <table className="small spec-roles">
        <thead>
          <tr>
            <th scope="col">{t("Role")}</th>
            <th scope="col">{t("Tasks")}</th>
            <th scope="col">{t("Per task")}</th>
            <th scope="col">{t("Command")}</th>
          </tr>
        </thead>
        {Object.entries(roles).map(([name, role]) => (
          <tbody key={name}>
            <tr>
              <th scope="row">{name}</th>
              <td>
                <span className={role.replicas === undefined ? "muted" : ""}>
                  {(role.replicas as number | undefined) ?? defaults.role.replicas}
                </span>
              </td>
              <td className="nowrap">
                <Resources resources={(role.resources ?? {}) as SpecRecord} />
              </td>
              <td>
                <pre className="text wrap" tabIndex={0} aria-label={t("Command of {roles}", { roles: name })}>
                  {formatCommand(role.command as string | string[] | undefined)}
                </pre>
                <SpecFields record={role} defaults={defaults.role} leaveOut={ROLE_COLUMNS} />
              </td>
            </tr>
          </tbody>
        ))}
      </table>
    </div>
  );
}

function Resources({ resources }: { resources: SpecRecord }): ReactNode {
  const given = setFields({ resources });
  const usual = defaultFields({ resources }, defaults.role).filter(({ path }) => path.startsWith("resources."));
  return [...given, ...usual].map(({ path, value }, index) => (
    <div key={path} className={index < given.length ? "" : "muted"}>
      {path.replace("resources.", "")} {value}
    </div>
  ));
}

function DataCard({ spec }: { spec: SpecRecord }): ReactNode {
  const inputs = (spec.inputs ?? []) as SpecRecord[];
  const outputs = (spec.outputs ?? []) as SpecRecord[];
  const places = pick(spec, ["checkpoint", "board"]);
  if (!inputs.length && !outputs.length && !Object.keys(places).length) return null;
  return (
    <section className="card">
      <h2>{t("Data and models")}</h2>
      <DataPlaces name={t("Inputs")} records={inputs} usual={defaults.input} />
      <DataPlaces name={t("Outputs")} records={outputs} usual={defaults.output} />
      {Object.keys(places).length > 0 && (
        <div className="place">
          <h3>{t("Checkpoints and event files")}</h3>
          <SpecFields record={places} defaults={pickUnder(defaults.job, ["checkpoint", "board"])} />
        </div>
      )}
    </section>
  );
}

function DataPlaces({ name, records, usual }: { name: string; records: SpecRecord[]; usual: SpecRecord }): ReactNode {
  return records.map((record, index) => (
    <div key={index} className="place">
      <h3>{records.length > 1 ? `${name} ${index + 1}` : name}</h3>
      <SpecFields record={record} defaults={usual} />
    </div>
  ));
}

interface FieldsProps {
  record: SpecRecord;
  defaults: SpecRecord;
  leaveOut?: string[];
}

function SpecFields({ record, defaults: usual, leaveOut = [] }: FieldsProps): ReactNode {
  const given = setFields(record, leaveOut);
  const others = defaultFields(record, usual, leaveOut);
  return (
    <>
      {given.length > 0 && (
        <dl className="description-list spec-fields">
          {given.map(({ path, value }) => (
            <div key={path}>
              <dt>{path}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {others.length > 0 && (
        <p className="muted spec-defaults">
          {others.map(({ path, value }) => (
            <span key={path}>{`${path} ${value}`}</span>
          ))}
        </p>
      )}
    </>
  );
}

function pick(record: SpecRecord, keys: string[]): SpecRecord {
  return Object.fromEntries(Object.entries(record).filter(([key]) => keys.includes(key)));
}

function pickUnder(usual: SpecRecord, keys: string[]): SpecRecord {
  return Object.fromEntries(Object.entries(usual).filter(([path]) => keys.some((key) => path.startsWith(`${key}.`))));
}
