// The kinds of events in plain words. The event log has the names of howdah.spec.events.

import { messageKey, t } from "../language";

const KINDS: Record<string, string> = {
  JobStarted: messageKey("job started"),
  Asked: messageKey("containers requested"),
  Waiting: messageKey("waiting"),
  Allocated: messageKey("container granted"),
  PreflightPassed: messageKey("checks passed"),
  WorldFormed: messageKey("all joined"),
  ContainerEnded: messageKey("container ended"),
  CancelRequested: messageKey("cancel requested"),
  GangReleased: messageKey("containers given back"),
  GangRestarted: messageKey("restarted"),
  Resized: messageKey("resized"),
  TookOver: messageKey("master replaced"),
  AllocationLost: messageKey("allocation lost"),
  MasterEnded: messageKey("master ended"),
  SaveRequested: messageKey("snapshot requested"),
  SaveStarted: messageKey("snapshot begun"),
  SaveAdvanced: messageKey("snapshot goes on"),
  SaveDone: messageKey("snapshot done"),
  SaveFailed: messageKey("snapshot failed"),
  CheckpointFound: messageKey("checkpoint looked for"),
  LossAnnounced: messageKey("loss announced"),
  Stalled: messageKey("no progress"),
  StacksTaken: messageKey("stacks kept"),
  BoardChanged: messageKey("TensorBoard"),
  Stopping: messageKey("stopping"),
  Noted: messageKey("note"),
  TimeLost: messageKey("time lost"),
  Committed: messageKey("output committed"),
  JobFinished: messageKey("job ended"),
  Launched: messageKey("container started"),
  Greeted: messageKey("executor started"),
  Joined: messageKey("task joined"),
  Checked: messageKey("node checked"),
  Started: messageKey("program started"),
  Yielded: messageKey("values announced"),
  TrackerRunsFound: messageKey("tracker run"),
  Ended: messageKey("task ended"),
  Straggling: messageKey("straggler"),
  TaskEntered: messageKey("shell or command"),
};

/** Returns the kind of an event in the reader's language. */
export function kindName(kind: string): string {
  return t(KINDS[kind] ?? kind);
}
