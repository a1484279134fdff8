// Plain words for the causes by which a task's, or a job's, work was lost.

import { messageKey, t } from "../language";

const CAUSES: Record<string, string> = {
  cancelled: messageKey("cancelled"),
  exit: messageKey("program failed"),
  gpu: messageKey("GPU failed"),
  image: messageKey("image not used"),
  localise: messageKey("files not fetched"),
  logs: messageKey("too much log output"),
  lost: messageKey("node or container lost"),
  master: messageKey("master ended"),
  memory: messageKey("memory exceeded"),
  other: messageKey("other causes"),
  port: messageKey("port in use"),
  preempted: messageKey("preempted"),
  preflight: messageKey("pre-flight failed"),
  released: messageKey("gang incomplete"),
  signal: messageKey("killed by a signal"),
  silent: messageKey("executor silent"),
  stalled: messageKey("hung"),
  start: messageKey("could not start"),
  stopped: messageKey("stopped"),
  stream: messageKey("stream failed"),
  upload: messageKey("upload failed"),
  withdrawn: messageKey("container withdrawn"),
};

/** Returns a cause (`by_cause`, `cause` of the API) in the reader's language. */
export function causeName(cause: string): string {
  return Object.hasOwn(CAUSES, cause) ? t(CAUSES[cause] ?? cause) : cause;
}
