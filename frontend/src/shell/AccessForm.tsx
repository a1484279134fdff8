// What is shown to somebody without access: which command prints a link, and a field for what it printed.

import { Button, Input } from "antd";
import { type ReactNode, useState } from "react";
import type { Refused } from "../client";
import { say } from "../language";
import { useRoute } from "../route";
import { enter } from "../tokens";

export function AccessForm({ refused }: { refused: Refused }): ReactNode {
  const { path } = useRoute();
  const [typed, setTyped] = useState("");
  const [state, setState] = useState<"" | "busy" | "wrong">("");
  const id = path[0] === "jobs" && path[1] ? path[1] : "ID";
  const open = async (): Promise<void> => {
    setState("busy");
    setState((await enter(typed)) ? "" : "wrong");
  };
  return (
    <form
      className="card access"
      onSubmit={(event) => {
        event.preventDefault();
        void open();
      }}
    >
      <h1>{say("You need an access link")}</h1>
      <p>{say("Run this command and open the link that it prints, or put the link in here:")}</p>
      <p>
        <code>{refused.command.replace(/\bID$/, id)}</code>
      </p>
      <div className="row">
        <Input
          autoFocus
          aria-label={say("Link or token")}
          placeholder={say("Link or token")}
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          style={{ flex: "1 1 260px" }}
        />
        <Button type="primary" htmlType="submit" loading={state === "busy"} disabled={!typed.trim()}>
          {say("Open")}
        </Button>
      </div>
      {state === "wrong" && (
        <p className="bad" role="alert">
          {say("This link does not open this page.")}
        </p>
      )}
    </form>
  );
}
