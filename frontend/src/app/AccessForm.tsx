// Shown without access: the command that prints an access link, and a field for that link.

import { Button, Input } from "antd";
import { type ReactNode, useState } from "react";
import type { ApiError } from "../apiClient";
import { t } from "../language";
import { useRoute } from "../router";
import { submitToken } from "../tokens";

export function AccessForm({ error }: { error: ApiError }): ReactNode {
  const { path } = useRoute();
  const [text, setText] = useState("");
  const [state, setState] = useState<"" | "busy" | "wrong">("");
  const id = path[0] === "jobs" && path[1] ? path[1] : "ID";
  const submit = async (): Promise<void> => {
    setState("busy");
    setState((await submitToken(text)) ? "" : "wrong");
  };
  return (
    <form
      className="card access"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>{t("You need an access link")}</h1>
      <p>{t("Run this command and open the link that it prints, or enter the link here:")}</p>
      <p>
        <code>{error.command.replace(/\bID$/, id)}</code>
      </p>
      <div className="row">
        <Input
          autoFocus
          aria-label={t("Link or token")}
          placeholder={t("Link or token")}
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
          style={{ flex: "1 1 260px" }}
        />
        <Button type="primary" htmlType="submit" loading={state === "busy"} disabled={!text.trim()}>
          {t("Open")}
        </Button>
      </div>
      {state === "wrong" && (
        <p className="bad" role="alert">
          {t("This link does not open this page.")}
        </p>
      )}
    </form>
  );
}
