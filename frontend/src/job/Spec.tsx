// What was submitted, what it became, and out of which surroundings.

import { Button, Input, Segmented } from "antd";
import { type ReactNode, useState } from "react";
import type { Captured, Job } from "../api";
import { plain, time } from "../format";
import { say } from "../language";
import { amend, useRoute } from "../route";
import { copy } from "../shell/clipboard";
import { Facts } from "../shell/Facts";
import { Nothing } from "../shell/Nothing";
import { yaml } from "./yaml";

export default function Spec({ job }: { job: Job }): ReactNode {
  const kind = useRoute().query.get("kind") ?? "resolved";
  const submitted = job.submitted?.yaml ?? "";
  return (
    <>
      <div className="row" style={{ marginBottom: 8 }}>
        <Segmented
          aria-label={say("Which spec")}
          value={kind}
          onChange={(value) => amend({ kind: value })}
          options={[
            { value: "resolved", label: say("As resolved") },
            { value: "submitted", label: say("As submitted") },
            { value: "captured", label: say("Surroundings") },
          ]}
        />
        {kind === "submitted" && <span className="muted mono">{job.submitted?.file}</span>}
      </div>
      {kind === "resolved" && <Text text={yaml(job.resolved)} />}
      {kind === "submitted" &&
        (submitted ? <Text text={submitted} /> : <Nothing text={say("Nobody has kept what was submitted.")} />)}
      {kind === "captured" && <Surroundings captured={job.captured} />}
    </>
  );
}

function Text({ text }: { text: string }): ReactNode {
  return (
    <>
      <pre className="text" tabIndex={0} style={{ maxHeight: "calc(100vh - 320px)" }}>
        {text}
      </pre>
      <Button size="small" style={{ marginTop: 8 }} onClick={() => void copy(text)}>
        {say("Copy")}
      </Button>
    </>
  );
}

function Surroundings({ captured }: { captured: Captured | null }): ReactNode {
  const [sought, setSought] = useState("");
  if (!captured) return <Nothing text={say("Nobody has kept the surroundings.")} />;
  const packages = Object.entries(captured.packages ?? {});
  const shown = packages.filter(([name]) => name.toLowerCase().includes(sought.toLowerCase()));
  const dirty = captured.git_dirty ? ` ${say("(with changes that are not in it)")}` : "";
  return (
    <div className="cards">
      <section className="card">
        <h2>{say("Surroundings")}</h2>
        <Facts
          facts={[
            [say("Submitted"), captured.submitted_at ? time(captured.submitted_at) : ""],
            [say("Git commit"), captured.git_commit ? captured.git_commit + dirty : ""],
            [say("Command"), (captured.command ?? []).join(" ")],
            [say("Client"), captured.client ? plain(captured.client) : ""],
          ]}
        />
      </section>
      <section className="card">
        <h2>{say("Variables")}</h2>
        <Facts facts={Object.entries(captured.variables ?? {})} />
      </section>
      <section className="card">
        <h2>{say("Packages ({count})", { count: packages.length })}</h2>
        <Input
          size="small"
          aria-label={say("Search packages")}
          value={sought}
          onChange={(event) => setSought(event.target.value)}
        />
        <div className="scroll" tabIndex={0} style={{ maxHeight: 400, marginTop: 6 }}>
          <Facts facts={shown} />
        </div>
      </section>
    </div>
  );
}
