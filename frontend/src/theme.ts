// The light and the dark theme, with the page's own colours: each has a contrast of at least 4.5 to 1.

import { type ThemeConfig, theme } from "antd";
import { createContext, useContext } from "react";

export type ThemeChoice = "system" | "light" | "dark";

const STORAGE_KEY = "howdah.theme";

export function loadThemeChoice(): ThemeChoice {
  const stored = window.localStorage.getItem(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function saveThemeChoice(choice: ThemeChoice): void {
  window.localStorage.setItem(STORAGE_KEY, choice);
}

export const DarkModeContext = createContext(false);

export function useDarkMode(): boolean {
  return useContext(DarkModeContext);
}

const LIGHT = {
  "--text": "#1b1f23",
  "--muted": "#57606a",
  "--border": "#d0d7de",
  "--ground": "#f6f8fa",
  "--surface": "#ffffff",
  "--raised": "#eef1f4",
  "--link": "#0b5cad",
  "--ok": "#1e6b2e",
  "--bad": "#b3261e",
  "--wait": "#7a4f00",
};

const DARK: typeof LIGHT = {
  "--text": "#e6e8ea",
  "--muted": "#a5adb5",
  "--border": "#3a4047",
  "--ground": "#101316",
  "--surface": "#181c20",
  "--raised": "#23282e",
  "--link": "#7fb8f5",
  "--ok": "#7ccf8b",
  "--bad": "#ff9388",
  "--wait": "#e5b567",
};

export function cssVariables(dark: boolean): typeof LIGHT {
  return dark ? DARK : LIGHT;
}

export function antTheme(dark: boolean): ThemeConfig {
  const colours = cssVariables(dark);
  return {
    algorithm: dark ? theme.darkAlgorithm : theme.defaultAlgorithm,
    components: {
      Button: dark ? { dangerColor: "#1b1f23" } : {},
    },
    token: {
      colorPrimary: dark ? "#3279c0" : "#0b5cad",
      colorLink: colours["--link"],
      colorText: colours["--text"],
      colorTextSecondary: colours["--muted"],
      colorTextTertiary: colours["--muted"],
      colorTextDescription: colours["--muted"],
      colorTextPlaceholder: colours["--muted"],
      colorError: dark ? "#ff9388" : "#b3261e",
      colorBgBase: dark ? "#181c20" : "#ffffff",
      colorBgLayout: colours["--ground"],
      colorBorder: dark ? "#5b646d" : "#8c959f",
      colorBorderSecondary: colours["--border"],
      borderRadius: 5,
      motion: false,
      fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif",
      fontFamilyCode: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
    },
  };
}

const LIGHT_LINES = [
  "#0b6bcb",
  "#c2410c",
  "#1a7f37",
  "#8250df",
  "#b3261e",
  "#0e7490",
  "#9a6700",
  "#bf3989",
  "#57606a",
  "#4d7c0f",
];
const DARK_LINES = [
  "#6cb6ff",
  "#f69d50",
  "#57ab5a",
  "#b083f0",
  "#ff8a80",
  "#4fc3d9",
  "#daaa3f",
  "#fc8dc7",
  "#adbac7",
  "#a3c76d",
];

/** Returns the colour of the n-th line of a chart. */
export function lineColour(index: number, dark: boolean): string {
  const colours = dark ? DARK_LINES : LIGHT_LINES;
  return colours[index % colours.length] as string;
}
