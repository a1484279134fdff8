import { Button } from "antd";
import type { ReactNode } from "react";
import { get } from "../client";
import { say } from "../language";
import { viewToken } from "../tokens";
import { copy } from "./clipboard";

/** Copies a link to this very place which lets its reader look. */
export function CopyLink(): ReactNode {
  return (
    <Button
      size="small"
      title={say("Who opens this link may look at all that you see here, and change nothing.")}
      onClick={() => void linkHere().then(copy)}
    >
      {say("Copy link")}
    </Button>
  );
}

async function linkHere(): Promise<string> {
  const { origin, pathname, hash } = window.location;
  const { path, token } = await get("session", {}).catch(() => ({ path: "", token: "" }));
  const known = token || viewToken();
  const place = hash.startsWith("#/") ? hash : "#/";
  const added = known && `${place.includes("?") ? "&" : "?"}token=${encodeURIComponent(known)}`;
  return origin + (path || pathname) + place + added;
}
