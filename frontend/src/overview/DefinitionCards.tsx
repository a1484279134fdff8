// What the job is made of: its commands, variables, inputs, outputs, snapshots and checkpoints.

import type { ReactNode } from "react";
import type { Job, Snapshot } from "../api";
import { type DescriptionItem, DescriptionList } from "../components/DescriptionList";
import { SafeLink } from "../components/SafeLink";
import { formatBytes, formatTime } from "../format";
import { t } from "../language";
import { href } from "../router";
import { hasEnded } from "../job/jobState";
import { formatCommand, type ResolvedInput, resolvedSpec } from "./resolvedSpec";

const SHOWN_SNAPSHOTS = 3;

export function DefinitionCards({ job }: { job: Job }): ReactNode {
  const commands = groupCommands(job);
  const variables = listVariables(job);
  return (
    <>
      {commands.length > 0 && (
        <section className="card">
          <h2>{t("Command")}</h2>
          {commands.map(([command, roles]) => (
            <div key={roles.join(" ")} className="command">
              {job.roles.length > 1 && <div className="muted">{roles.join(", ")}</div>}
              <pre className="text wrap" tabIndex={0} aria-label={t("Command of {roles}", { roles: roles.join(", ") })}>
                {command}
              </pre>
            </div>
          ))}
        </section>
      )}
      {variables.length > 0 && (
        <section className="card">
          <h2>{t("Variables")}</h2>
          <div className="scroll short" tabIndex={0} role="group" aria-label={t("Variables")}>
            <DescriptionList items={variables} />
          </div>
        </section>
      )}
      <DataCard job={job} />
    </>
  );
}

/** Returns each command with the roles that run it. */
function groupCommands(job: Job): [command: string, roles: string[]][] {
  const found = new Map<string, string[]>();
  for (const [name, { command }] of Object.entries(resolvedSpec(job).roles ?? {})) {
    const text = formatCommand(command);
    if (text) found.set(text, [...(found.get(text) ?? []), name]);
  }
  return [...found];
}

/** Lists the job's variables, then those of single roles, whose names have the role in front. */
function listVariables(job: Job): DescriptionItem[] {
  const ofRoles = Object.entries(resolvedSpec(job).roles ?? {}).flatMap(([role, { env }]) =>
    Object.entries(env ?? {}).map(([name, value]): DescriptionItem => [`${role}: ${name}`, value]),
  );
  return [...Object.entries(job.captured?.variables ?? {}), ...ofRoles];
}

function DataCard({ job }: { job: Job }): ReactNode {
  const { inputs = [], outputs = [], checkpoint } = resolvedSpec(job);
  const planned = outputs.map(({ path }) => path).filter((path) => !job.outputs.includes(path));
  const snapshots = job.saves.filter(({ state, removed }) => state === "SUCCEEDED" && !removed);
  const places: [name: string, content: ReactNode, shown: boolean][] = [
    [t("Inputs"), <InputList key="inputs" inputs={inputs} />, inputs.length > 0],
    [
      t("Outputs"),
      <ul key="outputs">
        {job.outputs.map((uri) => (
          <li key={uri}>
            <Uri uri={uri} />
          </li>
        ))}
        {planned.map((uri) => (
          <li key={uri}>
            <Uri uri={uri} /> <span className="muted">{hasEnded(job) ? t("(not made)") : t("(not there yet)")}</span>
          </li>
        ))}
      </ul>,
      job.outputs.length + planned.length > 0,
    ],
    [t("Snapshots"), <SnapshotList key="snapshots" snapshots={snapshots} />, snapshots.length > 0],
    [
      t("Checkpoints"),
      <CheckpointList key="checkpoints" job={job} directory={checkpoint?.path ?? ""} />,
      Boolean(checkpoint?.path || job.resumed),
    ],
  ];
  const shownPlaces = places.filter(([, , shown]) => shown);
  if (!shownPlaces.length) return null;
  return (
    <section className="card">
      <h2>{t("Data and models")}</h2>
      {shownPlaces.map(([name, content]) => (
        <div key={name} className="place">
          <h3>{name}</h3>
          {content}
        </div>
      ))}
    </section>
  );
}

/** An address, as a link if a browser can open it. */
function Uri({ uri }: { uri: string }): ReactNode {
  return (
    <span className="mono">
      <SafeLink url={uri}>{uri}</SafeLink>
    </span>
  );
}

function InputList({ inputs }: { inputs: ResolvedInput[] }): ReactNode {
  return (
    <ul>
      {inputs.map(({ path, to = "input", roles = [] }, index) => (
        <li key={index}>
          {[path].flat().map((uri) => (
            <div key={uri}>
              <Uri uri={uri} />
            </div>
          ))}
          <span className="muted">
            {roles.length
              ? t("as {name}, for {roles}", { name: to, roles: roles.join(", ") })
              : t("as {name}", { name: to })}
          </span>
        </li>
      ))}
    </ul>
  );
}

function SnapshotList({ snapshots }: { snapshots: Snapshot[] }): ReactNode {
  return (
    <ul>
      {snapshots
        .slice(-SHOWN_SNAPSHOTS)
        .reverse()
        .map(({ number, uri, finished, files, bytes }) => (
          <li key={number}>
            <Uri uri={uri} />{" "}
            <span className="muted">
              {formatTime(finished)}, {t("{files} files, {size}", { files, size: formatBytes(bytes) })}
            </span>
          </li>
        ))}
    </ul>
  );
}

function CheckpointList({ job, directory }: { job: Job; directory: string }): ReactNode {
  const checkpoints = ["jobs", job.id, "curves", "checkpoints"];
  return (
    <ul>
      {job.resumed && (
        <li>
          {t("Resumed from")}{" "}
          <a className="mono" href={href(checkpoints, { uri: job.resumed })}>
            {job.resumed}
          </a>
        </li>
      )}
      {directory && (
        <li>
          <Uri uri={directory} />
        </li>
      )}
      <li>
        <a href={href(checkpoints)}>{t("All checkpoints")}</a>
      </li>
    </ul>
  );
}
