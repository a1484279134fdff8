// Text for the clipboard, also on pages that browsers call insecure, which plain HTTP to another machine is.

import { message } from "antd";
import { t } from "../language";

/** Put `text` into the clipboard and say so. */
export async function copyToClipboard(text: string): Promise<void> {
  if ((await writeWithClipboardApi(text)) || copyBySelection(text)) void message.success(t("Copied"));
  else void message.error(t("The browser does not allow copying here."));
}

async function writeWithClipboardApi(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // there is none without HTTPS, or it is not allowed
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without HTTPS
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
