// Copies text to the clipboard, also on insecure pages: browsers regard plain HTTP to another machine as insecure.

import { message } from "antd";
import { t } from "../language";

/** Copies `text` to the clipboard and shows a message about it. */
export async function copyToClipboard(text: string): Promise<void> {
  if ((await writeWithClipboardApi(text)) || copyBySelection(text)) void message.success(t("Copied"));
  else void message.error(t("The browser does not allow copying here."));
}

async function writeWithClipboardApi(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // without HTTPS there is no clipboard API, or the user did not permit it
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
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}
