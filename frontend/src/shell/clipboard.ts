// Text for the clipboard, also on pages that browsers call insecure, which plain HTTP to another machine is.

import { message } from "antd";
import { say } from "../language";

/** Put `text` into the clipboard and say so. */
export async function copy(text: string): Promise<void> {
  if ((await written(text)) || selected(text)) void message.success(say("Copied"));
  else void message.error(say("The browser does not allow copying here."));
}

async function written(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // there is none without HTTPS, or it is not allowed
  }
}

function selected(text: string): boolean {
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
