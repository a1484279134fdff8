import { Button } from "antd";
import type { ReactNode } from "react";
import { apiGet } from "../apiClient";
import { copyToClipboard } from "../components/clipboard";
import { t } from "../language";
import { getViewToken } from "../tokens";

/** Copies a link to the current view, with a token that permits viewing only. */
export function CopyLinkButton(): ReactNode {
  return (
    <Button
      size="small"
      title={t("Whoever opens this link can see everything that you see here, but cannot change anything.")}
      onClick={() => void buildViewLink().then(copyToClipboard)}
    >
      {t("Copy link")}
    </Button>
  );
}

async function buildViewLink(): Promise<string> {
  const { origin, pathname, hash } = window.location;
  const { path, token } = await apiGet("session", {}).catch(() => ({ path: "", token: "" }));
  const viewToken = token || getViewToken();
  const view = hash.startsWith("#/") ? hash : "#/";
  const tokenParameter = viewToken && `${view.includes("?") ? "&" : "?"}token=${encodeURIComponent(viewToken)}`;
  return origin + (path || pathname) + view + tokenParameter;
}
