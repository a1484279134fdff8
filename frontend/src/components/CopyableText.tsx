import { Button } from "antd";
import type { ReactNode } from "react";
import { t } from "../language";
import { copyToClipboard } from "./clipboard";

/** A text with a button that copies it. */
export function CopyableText({ text, maxHeight }: { text: string; maxHeight?: string }): ReactNode {
  return (
    <>
      <pre className="text" tabIndex={0} style={{ maxHeight }}>
        {text}
      </pre>
      <Button size="small" style={{ marginTop: 8 }} onClick={() => void copyToClipboard(text)}>
        {t("Copy")}
      </Button>
    </>
  );
}
