// Plain words for names of the API that people read: phases of a task, and kinds of events on the timeline.

import { messageKey, t } from "../language";

const PHASES: Record<string, string> = {
  asked: messageKey("requested"),
  allocated: messageKey("allocated"),
  launched: messageKey("launched"),
  localising: messageKey("fetching files"),
  joined: messageKey("ready"),
  running: messageKey("running"),
  ended: messageKey("ended"),
};

const EVENTS: Record<string, string> = {
  failed: messageKey("failed"),
  lost: messageKey("lost"),
  restarted: messageKey("restarted"),
  takeover: messageKey("master replaced"),
  save: messageKey("snapshot"),
  note: messageKey("note"),
};

/** Returns a phase of a task in the reader's language. */
export function phaseName(phase: string): string {
  return t(PHASES[phase] ?? phase);
}

/** Returns the kind of an event of the timeline in the reader's language. */
export function eventName(kind: string): string {
  return t(EVENTS[kind] ?? kind);
}
