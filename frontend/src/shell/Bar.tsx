// The bar at the top: where one can go, and how the page looks and speaks.

import { Button, Select } from "antd";
import type { ReactNode } from "react";
import type { Server } from "../api";
import { TraceBox } from "../history/TraceBox";
import logo from "../howdah.svg";
import { type Language, language, say } from "../language";
import { href, useRoute } from "../route";
import type { Choice } from "../theme";
import { CopyLink } from "./CopyLink";

interface Props {
  server: Server | undefined;
  theme: Choice;
  onTheme: (choice: Choice) => void;
  onLanguage: (wanted: Language) => void;
}

export function Bar({ server, theme, onTheme, onLanguage }: Props): ReactNode {
  const themes: { value: Choice; label: string }[] = [
    { value: "system", label: say("System") },
    { value: "light", label: say("Light") },
    { value: "dark", label: say("Dark") },
  ];
  const other: Language = language() === "zh" ? "en" : "zh";
  return (
    <header className="bar">
      <a className="brand" href={href([])}>
        <img src={logo} alt="" width={22} height={22} />
        howdah
      </a>
      {server?.kind === "history" && <Places />}
      <span className="grow" />
      {server && <TraceBox />}
      {server && <CopyLink />}
      <Select
        size="small"
        aria-label={say("Colours")}
        value={theme}
        options={themes}
        onChange={onTheme}
        popupMatchSelectWidth={false}
      />
      <Button size="small" lang={other} onClick={() => onLanguage(other)}>
        {other === "zh" ? "中文" : "English"}
      </Button>
    </header>
  );
}

function Places(): ReactNode {
  const [first = "jobs"] = useRoute().path;
  const places: [string, string][] = [
    ["jobs", say("Jobs")],
    ["users", say("Users")],
    ["compare", say("Compare")],
  ];
  return (
    <nav aria-label={say("Places")}>
      {places.map(([place, label]) => (
        <a key={place} href={href([place])} aria-current={first === place ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
