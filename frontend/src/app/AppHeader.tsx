// The header at the top: navigation, search for a job, theme and language.

import { Button, Select } from "antd";
import type { ReactNode } from "react";
import type { ServerInfo } from "../api";
import { JobFinder } from "../history/JobFinder";
import logo from "../howdah.svg";
import { type Language, currentLanguage, t } from "../language";
import { href, useRoute } from "../router";
import type { ThemeChoice } from "../theme";
import { CopyLinkButton } from "./CopyLinkButton";

interface Props {
  server: ServerInfo | undefined;
  theme: ThemeChoice;
  onThemeChange: (choice: ThemeChoice) => void;
  onLanguageChange: (wanted: Language) => void;
}

export function AppHeader({ server, theme, onThemeChange, onLanguageChange }: Props): ReactNode {
  const themes: { value: ThemeChoice; label: string }[] = [
    { value: "system", label: t("System") },
    { value: "light", label: t("Light") },
    { value: "dark", label: t("Dark") },
  ];
  const other: Language = currentLanguage() === "zh" ? "en" : "zh";
  return (
    <header className="app-header">
      <a className="brand" href={href([])}>
        <img src={logo} alt="" width={22} height={22} />
        howdah
      </a>
      {server?.kind === "history" && <MainNavigation />}
      <span className="grow" />
      {server && <JobFinder listsJobs={server.kind === "history"} />}
      {server && <CopyLinkButton />}
      <Select
        size="small"
        aria-label={t("Theme")}
        value={theme}
        options={themes}
        onChange={onThemeChange}
        popupMatchSelectWidth={false}
      />
      <Button size="small" lang={other} onClick={() => onLanguageChange(other)}>
        {other === "zh" ? "中文" : "English"}
      </Button>
    </header>
  );
}

function MainNavigation(): ReactNode {
  const [first = "jobs"] = useRoute().path;
  const places: [string, string][] = [
    ["jobs", t("Jobs")],
    ["users", t("Users")],
    ["compare", t("Compare")],
  ];
  return (
    <nav aria-label={t("Main navigation")}>
      {places.map(([place, label]) => (
        <a key={place} href={href([place])} aria-current={first === place ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
