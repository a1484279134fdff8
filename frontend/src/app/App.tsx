// The root component: language, theme, header, and the page that the address names.

import { ConfigProvider } from "antd";
import type { Locale } from "antd/es/locale";
import enUS from "antd/locale/en_US";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import type { ServerInfo } from "../api";
import { ApiError } from "../apiClient";
import { EmptyState } from "../components/EmptyState";
import { ErrorBoundary } from "../components/ErrorBoundary";
import { JobPage } from "../job/JobPage";
import { setLanguage, type Language, currentLanguage, t } from "../language";
import { useRoute } from "../router";
import { antTheme, type ThemeChoice, DarkModeContext, saveThemeChoice, loadThemeChoice, cssVariables } from "../theme";
import { usePolling } from "../usePolling";
import { AccessForm } from "./AccessForm";
import { AppHeader } from "./AppHeader";

const JobListPage = lazy(() => import("../history/JobListPage"));
const UsersPage = lazy(() => import("../history/UsersPage"));
const ComparePage = lazy(() => import("../history/ComparePage"));

export function App(): ReactNode {
  const [theme, setTheme] = useState<ThemeChoice>(loadThemeChoice);
  const [language, setLanguageState] = useState<Language>(currentLanguage);
  const locale = useLocale(language);
  const systemDark = useSystemDark();
  const dark = theme === "system" ? systemDark : theme === "dark";
  useEffect(() => {
    for (const [name, value] of Object.entries(cssVariables(dark))) document.body.style.setProperty(name, value);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  }, [dark]);
  const chooseTheme = (choice: ThemeChoice): void => {
    saveThemeChoice(choice);
    setTheme(choice);
  };
  const chooseLanguage = (choice: Language): void => {
    setLanguage(choice);
    setLanguageState(choice);
  };
  return (
    <ConfigProvider locale={locale} theme={antTheme(dark)} button={{ autoInsertSpace: false }}>
      <DarkModeContext value={dark}>
        <Content key={language} theme={theme} onThemeChange={chooseTheme} onLanguageChange={chooseLanguage} />
      </DarkModeContext>
    </ConfigProvider>
  );
}

interface ContentProps {
  theme: ThemeChoice;
  onThemeChange: (choice: ThemeChoice) => void;
  onLanguageChange: (wanted: Language) => void;
}

function Content({ theme, onThemeChange, onLanguageChange }: ContentProps): ReactNode {
  const server = usePolling("server", {}, {}, 30);
  const route = useRoute();
  return (
    <div className="page">
      <button type="button" className="skip" onClick={focusMain}>
        {t("Skip to the content")}
      </button>
      <AppHeader server={server.data} theme={theme} onThemeChange={onThemeChange} onLanguageChange={onLanguageChange} />
      <main id="main" tabIndex={-1}>
        <ErrorBoundary resetKey={route.path.join("/")}>
          <Suspense fallback={<EmptyState text={t("Loading…")} />}>
            <CurrentPage server={server.data} error={server.error} />
          </Suspense>
        </ErrorBoundary>
      </main>
    </div>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}

function ServerNotice({ error }: { error: Error | undefined }): ReactNode {
  return (
    <EmptyState text={error ? t("The server does not answer: {error}", { error: error.message }) : t("Loading…")} />
  );
}

/** Chooses the page. A job that the address names is requested before the server has described itself. */
function CurrentPage({ server, error }: { server: ServerInfo | undefined; error: Error | undefined }): ReactNode {
  const { path } = useRoute();
  const [first, id] = path;
  if (error instanceof ApiError && error.parameter === "token") return <AccessForm error={error} />;
  if (first === "jobs" && id) return <JobPage key={id} id={id} server={server} />;
  if (!server) return <ServerNotice error={error} />;
  if (server.job) return <JobPage key={server.job} id={server.job} server={server} />;
  if (first === "users") return <UsersPage />;
  if (first === "compare") return <ComparePage server={server} />;
  return <JobListPage />;
}

function useLocale(language: Language): Locale {
  const [locale, setLocale] = useState<Locale>(enUS);
  useEffect(() => {
    let mounted = true;
    if (language === "en") setLocale(enUS);
    else void import("antd/locale/zh_CN").then((module) => mounted && setLocale(module.default));
    return () => {
      mounted = false;
    };
  }, [language]);
  return locale;
}

function useSystemDark(): boolean {
  const [dark, setDark] = useState(() => window.matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const mediaQuery = window.matchMedia("(prefers-color-scheme: dark)");
    const onChange = (): void => setDark(mediaQuery.matches);
    mediaQuery.addEventListener("change", onChange);
    return () => mediaQuery.removeEventListener("change", onChange);
  }, []);
  return dark;
}
