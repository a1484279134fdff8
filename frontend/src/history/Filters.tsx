// What jobs are looked for; it is kept in the address.

import { Button, Input, Select } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import { say } from "../language";
import { amend, go, useRoute } from "../route";

export const FILTERS = ["text", "user", "queue", "name", "state", "framework"] as const;

const STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];
const TYPING_MS = 300;

export function Filters(): ReactNode {
  const { query, path } = useRoute();
  const set = (name: string, value: string): void => amend({ [name]: value, pages: "" });
  return (
    <div className="row" style={{ marginBottom: 8 }}>
      <Text name="text" label={say("Search")} width={200} onChange={set} />
      <Text name="name" label={say("Name")} width={130} onChange={set} />
      <Text name="user" label={say("User")} width={110} onChange={set} />
      <Text name="queue" label={say("Queue")} width={110} onChange={set} />
      <Text name="framework" label={say("Framework")} width={120} onChange={set} />
      <Select
        aria-label={say("State")}
        value={query.get("state") ?? ""}
        options={[{ value: "", label: say("All states") }, ...STATES.map((value) => ({ value, label: say(value) }))]}
        onChange={(value) => set("state", value)}
        style={{ width: 130 }}
      />
      <Days onChange={set} />
      <Button onClick={() => go(path, {})}>{say("Clear")}</Button>
    </div>
  );
}

/** The first and the last day, by the browser's own calendar. */
export function Days({ onChange }: { onChange: (name: string, value: string) => void }): ReactNode {
  const { query } = useRoute();
  return (
    <>
      {(["from", "to"] as const).map((name) => (
        <Input
          key={name}
          type="date"
          aria-label={name === "from" ? say("From") : say("To")}
          value={query.get(name) ?? ""}
          onChange={(event) => onChange(name, event.target.value)}
          style={{ width: 140 }}
        />
      ))}
    </>
  );
}

interface TextProps {
  name: string;
  label: string;
  width: number;
  onChange: (name: string, value: string) => void;
}

/** Asks once typing has paused. */
function Text({ name, label, width, onChange }: TextProps): ReactNode {
  const asked = useRoute().query.get(name) ?? "";
  const [typed, setTyped] = useState(asked);
  useEffect(() => setTyped(asked), [asked]);
  useEffect(() => {
    if (typed === asked) return;
    const timer = window.setTimeout(() => onChange(name, typed), TYPING_MS);
    return () => window.clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- typing alone starts the clock
  }, [typed]);
  return (
    <Input
      allowClear
      aria-label={label}
      placeholder={label}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      style={{ width }}
    />
  );
}

/** A day of the calendar in epoch seconds: its beginning, or its end. */
export function seconds(day: string | null, end: boolean): number | "" {
  if (!day) return "";
  const found = new Date(`${day}T${end ? "23:59:59" : "00:00:00"}`).getTime() / 1000;
  return Number.isFinite(found) ? found : "";
}
