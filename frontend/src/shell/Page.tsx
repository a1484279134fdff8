// The whole page: language and theme around it, the bar, and what the address says is to be seen.

import { ConfigProvider } from "antd";
import type { Locale } from "antd/es/locale";
import enUS from "antd/locale/en_US";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import type { Server } from "../api";
import { Refused } from "../client";
import { JobPage } from "../job/JobPage";
import { chooseLanguage, type Language, language, say } from "../language";
import { usePolled } from "../polling";
import { useRoute } from "../route";
import { antTheme, type Choice, Dark, keepChoice, keptChoice, variables } from "../theme";
import { AccessForm } from "./AccessForm";
import { Bar } from "./Bar";
import { ErrorBoundary } from "./ErrorBoundary";
import { Nothing } from "./Nothing";

const JobList = lazy(() => import("../history/JobList"));
const Users = lazy(() => import("../history/Users"));
const Compare = lazy(() => import("../history/Compare"));

export function Page(): ReactNode {
  const [chosen, setChosen] = useState<Choice>(keptChoice);
  const [spoken, setSpoken] = useState<Language>(language);
  const locale = useLocale(spoken);
  const systemDark = useSystemDark();
  const dark = chosen === "system" ? systemDark : chosen === "dark";
  useEffect(() => {
    for (const [name, value] of Object.entries(variables(dark))) document.body.style.setProperty(name, value);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  }, [dark]);
  const choose = (choice: Choice): void => {
    keepChoice(choice);
    setChosen(choice);
  };
  const speak = (wanted: Language): void => {
    chooseLanguage(wanted);
    setSpoken(wanted);
  };
  return (
    <ConfigProvider locale={locale} theme={antTheme(dark)} button={{ autoInsertSpace: false }}>
      <Dark value={dark}>
        <Content key={spoken} theme={chosen} onTheme={choose} onLanguage={speak} />
      </Dark>
    </ConfigProvider>
  );
}

interface ContentProps {
  theme: Choice;
  onTheme: (choice: Choice) => void;
  onLanguage: (wanted: Language) => void;
}

function Content({ theme, onTheme, onLanguage }: ContentProps): ReactNode {
  const server = usePolled("server", {}, {}, 30);
  const route = useRoute();
  return (
    <div className="page">
      <button type="button" className="skip" onClick={focusMain}>
        {say("Skip to the content")}
      </button>
      <Bar server={server.data} theme={theme} onTheme={onTheme} onLanguage={onLanguage} />
      <main id="main" tabIndex={-1}>
        <ErrorBoundary place={route.path.join("/")}>
          <Suspense fallback={<Nothing text={say("Loading…")} />}>
            <Screen server={server.data} error={server.error} />
          </Suspense>
        </ErrorBoundary>
      </main>
    </div>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}

function Waiting({ error }: { error: Error | undefined }): ReactNode {
  return (
    <Nothing text={error ? say("The server does not answer: {error}", { error: error.message }) : say("Loading…")} />
  );
}

/** A job that the address names is asked for at once, whoever answers here. */
function Screen({ server, error }: { server: Server | undefined; error: Error | undefined }): ReactNode {
  const { path } = useRoute();
  const [first, id] = path;
  if (error instanceof Refused && error.place === "token") return <AccessForm refused={error} />;
  if (first === "jobs" && id) return <JobPage key={id} id={id} server={server} />;
  if (!server) return <Waiting error={error} />;
  if (server.job) return <JobPage key={server.job} id={server.job} server={server} />;
  if (first === "users") return <Users />;
  if (first === "compare") return <Compare server={server} />;
  return <JobList />;
}

function useLocale(spoken: Language): Locale {
  const [locale, setLocale] = useState<Locale>(enUS);
  useEffect(() => {
    let wanted = true;
    if (spoken === "en") setLocale(enUS);
    else void import("antd/locale/zh_CN").then((found) => wanted && setLocale(found.default));
    return () => {
      wanted = false;
    };
  }, [spoken]);
  return locale;
}

function useSystemDark(): boolean {
  const [dark, setDark] = useState(() => window.matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const asked = window.matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => setDark(asked.matches);
    asked.addEventListener("change", changed);
    return () => asked.removeEventListener("change", changed);
  }, []);
  return dark;
}
