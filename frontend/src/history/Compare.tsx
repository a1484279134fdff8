// Two jobs beside each other: where their specs differ, and their curves in one chart.

import { Button, Input } from "antd";
import { lazy, type ReactNode, useState } from "react";
import type { Difference, Server } from "../api";
import { plain } from "../format";
import { say } from "../language";
import { usePolled } from "../polling";
import { go, href, useRoute } from "../route";
import { Nothing } from "../shell/Nothing";

const Scalars = lazy(() => import("../curves/Scalars").then(({ Scalars: found }) => ({ default: found })));

export default function Compare({ server }: { server: Server }): ReactNode {
  const { query } = useRoute();
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  return (
    <>
      <h1 className="title">{say("Compare")}</h1>
      <Ask key={`${a} ${b}`} a={a} b={b} />
      {a && b && <Differences a={a} b={b} />}
      {a && b && server.kind === "history" && <Curves a={a} />}
    </>
  );
}

function Ask({ a, b }: { a: string; b: string }): ReactNode {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const show = (): void => go(["compare"], { a: first.trim(), b: second.trim() });
  return (
    <form
      className="row"
      style={{ marginBottom: 10 }}
      onSubmit={(event) => {
        event.preventDefault();
        show();
      }}
    >
      <Input
        aria-label={say("One job's id")}
        placeholder={say("One job's id")}
        value={first}
        onChange={(event) => setFirst(event.target.value)}
        style={{ width: 290 }}
      />
      <Input
        aria-label={say("The other's")}
        placeholder={say("The other's")}
        value={second}
        onChange={(event) => setSecond(event.target.value)}
        style={{ width: 290 }}
      />
      <Button type="primary" htmlType="submit" disabled={!first.trim() || !second.trim()}>
        {say("Compare")}
      </Button>
    </form>
  );
}

function Differences({ a, b }: { a: string; b: string }): ReactNode {
  const polled = usePolled("compare", {}, { jobs: `${a},${b}` }, 0);
  const found = polled.data;
  if (!found) return <Nothing text={polled.error ? polled.error.message : say("Loading…")} />;
  const around = found.captured;
  return (
    <>
      {!found.spec.length && <Nothing text={say("Their specs are the same.")} />}
      {found.spec.length > 0 && <Table title={say("Where their specs differ")} a={a} b={b} rows={found.spec} />}
      {around.length > 0 && <Table title={say("Where their surroundings differ")} a={a} b={b} rows={around} />}
    </>
  );
}

function Table({ title, a, b, rows }: { title: string; a: string; b: string; rows: Difference[] }): ReactNode {
  return (
    <section className="card" style={{ marginBottom: 12 }}>
      <h2>{title}</h2>
      <div className="scroll" tabIndex={0} style={{ maxHeight: 300 }}>
        <table className="small">
          <thead>
            <tr>
              <th scope="col">{say("Field")}</th>
              {[a, b].map((id) => (
                <th key={id} scope="col">
                  <a href={href(["jobs", id])}>{id}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.path}>
                <td className="mono">{row.path}</td>
                <td className="mono">{row.a === null ? "–" : plain(row.a)}</td>
                <td className="mono">{row.b === null ? "–" : plain(row.b)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Curves({ a }: { a: string }): ReactNode {
  const job = usePolled("jobs/{job}", { job: a }, {}, 0).data;
  const polled = usePolled("jobs/{job}/curves/runs", { job: a }, {}, 0);
  const runs = polled.data?.runs;
  if (!job) return null;
  const waits = runs ? "" : (polled.error?.message ?? say("Reading event files…"));
  return <Scalars job={job} runs={runs ?? []} seconds={0} others waits={waits} />;
}
