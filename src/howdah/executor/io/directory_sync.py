"""Copies a program's checkpoints and event files between this node and the shared file system.

One helper at a time copies a directory. The last copy is made after the program has ended, and may take a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess, OnEnd, OnMessage
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import TaskOutput
from howdah.spec import uris
from howdah.spec.codec import decode, encode
from howdah.spec.message import message
from howdah.wire.helper_messages import (
    DirectorySyncReply,
    EventFileSyncReply,
    EventFileSyncRequest,
    FetchCheckpointRequest,
    StoreCheckpointsRequest,
)
from howdah.wire.messages import Assignment, CheckpointSyncOrder, EventFileSyncOrder, Orders

CHECKPOINT_DIR, RESUME_FROM = "HOWDAH_CHECKPOINT_DIR", "HOWDAH_RESUME_FROM"
EVENT_FILE_DIR, TRAINER_DIR = "HOWDAH_BOARD_DIR", "TENSORBOARD_LOGGING_DIR"
"""Our variable, and the one that Hugging Face's Trainer reads."""
LAST_COPY_S = 60.0
"""Seconds within which the files that a program leaves at its end must be stored."""
LOGS_EVERY_S = 60.0
_LARGE_LOGS_BYTES = 64 << 20
_EVENT_FILES_LIMIT_S = 600.0
_GRACE_S = 1.0
_SETTLE_S, _LAST_SETTLE_S = 5.0, 1.0
_MAX_FILES, _MAX_NAMED = 10_000, 10


class DirectorySyncRunner(ABC):
    """Stores one local directory at `uri` every `every_s` seconds while the program runs, and once after its end.

    Subclasses define which files are stored, and by which helper. A task that does not write (`writes`) stores nothing.
    `warn` tells users that the directory could not be stored.
    """

    not_stored = ""
    """The sentence that says that files could not be stored, with `{uri}` and `{reason}`."""

    def __init__(self, loop: EventLoop, path: str, uri: str, writes: bool, every_s: float, limit_s: float) -> None:
        self.loop, self.path, self.uri, self.writes = loop, path, uri, writes
        self.every_s, self.limit_s = every_s, limit_s
        self.warn: Callable[[str], None] = lambda _: None
        self._helper: Optional[HelperProcess] = None
        self._next_copy: Optional[Timer] = None
        self._deadline: Optional[Timer] = None
        self._too_late = False
        self._on_end: Optional[OnEnd] = None
        self._warned_of = ""

    def has_news(self) -> bool:
        """Return whether the directory has changed since the last copy."""
        return True

    @abstractmethod
    def store(self, last: bool, on_end: OnEnd) -> None:
        """Start the helper that stores the directory; `last` says that the program has ended."""

    def begin(self) -> None:
        """Store the program's files every `every_s` seconds, because the program runs now."""
        if self.writes:
            self._next_copy = self.loop.call_later(self.every_s, self._store_if_changed)

    def finish(self, on_end: OnEnd) -> None:
        """Store the files that the program has left at its end, then call `on_end(problem)`."""
        if self._next_copy is not None:
            self._next_copy.cancel()
        if not self.writes:
            self.loop.call_later(0.0, lambda: on_end(""))
            return
        self._on_end = on_end
        if self._helper is None:
            self._store_last("")

    def stop(self, grace_s: float) -> None:
        """Stop a fetch at once. The last copy may still take `LAST_COPY_S`: its files would be lost otherwise."""
        if self._on_end is not None:
            self.limit_last_copy(max(grace_s, LAST_COPY_S))
        elif self._helper is not None:
            self._helper.stop(_GRACE_S, "stopped while checkpoints were fetched")

    def limit_last_copy(self, seconds: float) -> None:
        """Give up the last copy after `seconds`, unless an earlier limit was set."""

        def give_up() -> None:
            self._too_late = True
            if self._helper is not None:
                self._helper.stop(_GRACE_S, f"it took longer than {seconds:.0f} s after the program's end")

        self._deadline = self._deadline or self.loop.call_later(seconds, give_up)

    def run_helper(
        self,
        argv: Sequence[str],
        request: object,
        on_end: OnEnd,
        on_message: Optional[OnMessage] = None,
        late: Optional[Callable[[], str]] = None,
    ) -> None:
        """Run one helper, which is stopped after `limit_s`. A helper that reports what it moves is stopped only when
        nothing has moved for that time. `late` returns the reason."""

        def ended(problem: str) -> None:
            self._helper = None
            on_end(problem)

        def told(said: Mapping[str, Any]) -> None:
            if "done_bytes" in said:
                helper.renew_limit()
            elif on_message is not None:
                on_message(said)

        helper = HelperProcess(self.loop, argv, request, ended, told, limit_s=self.limit_s, late=late, grace_s=_GRACE_S)
        self._helper = helper

    def _store_if_changed(self) -> None:
        if self.has_news():
            self.store(False, self._stored)
        else:
            self.begin()

    def _stored(self, problem: str) -> None:
        self._warn_once(problem)
        if self._on_end is None:
            self.begin()
        else:
            self._store_last(problem)

    def _store_last(self, problem: str) -> None:
        """Make the last copy, unless nothing has changed or no time is left."""
        if self.has_news() and not self._too_late:
            self.store(True, self._finished)
        else:
            self.loop.call_later(0.0, lambda: self._finished(problem))

    def _finished(self, problem: str) -> None:
        self._warn_once(problem)
        if self._deadline is not None:
            self._deadline.cancel()
        on_end, self._on_end, self._deadline, self._too_late = self._on_end, None, None, False
        assert on_end is not None
        on_end(problem)

    def _warn_once(self, problem: str) -> None:
        if problem and problem != self._warned_of:
            self._warned_of = problem
            self.warn(message(self.not_stored, uri=self.uri, reason=problem))


class CheckpointSyncRunner(DirectorySyncRunner):
    """Fetches the program's checkpoints before it starts, and stores them while it runs."""

    not_stored = "checkpoints could not be stored in {uri}: {reason}"

    def __init__(self, loop: EventLoop, order: CheckpointSyncOrder, directory: str, limit_s: float) -> None:
        path = os.path.join(directory, order.path)
        super().__init__(loop, path, order.uri, order.writes, order.every_s, limit_s)
        self.order, self.directory = order, directory

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """Replace the shared directory in the program's variables by the local directory."""
        local = {**variables, CHECKPOINT_DIR: self.path}
        if variables.get(RESUME_FROM):
            name = uris.local_name(uris.below(variables[RESUME_FROM], self.uri), self.uri)
            local[RESUME_FROM] = os.path.normpath(os.path.join(self.path, name))
        return local

    def fetch(self, orders: Orders, on_end: OnEnd) -> None:
        """Fetch the checkpoint from which the program continues, before it starts."""
        request = FetchCheckpointRequest(
            path=self.path,
            uri=self.uri,
            root=self.directory,
            resume=orders.environment.get(RESUME_FROM, ""),
            valid=self.order.valid,
        )
        self.run_helper(("howdah.checkpoints.directory_sync", "down"), request, on_end, self._warn_of_fetched)

    def _warn_of_fetched(self, reply: Mapping[str, Any]) -> None:
        self._warn_of_told(reply)
        if reply.get("is_unfinished"):
            self.warn(
                message(
                    "the last copy to {uri} was not finished: files there may be of different moments", uri=self.uri
                )
            )

    def store(self, last: bool, on_end: OnEnd) -> None:
        request = StoreCheckpointsRequest(
            path=self.path,
            uri=self.uri,
            root=self.directory,
            replace=self.order.replaces,
            is_alone=self.order.is_alone,
            settle_s=_LAST_SETTLE_S if last else _SETTLE_S,
            last=last,
            valid=self.order.valid,
        )
        on_reply = self._warn_of_left_out if last else self._warn_of_told
        self.run_helper(("howdah.checkpoints.directory_sync", "up"), request, on_end, on_reply, self._explain_stall)

    def _explain_stall(self) -> str:
        return message("nothing was moved for {seconds} s (`timeouts.localise`)", seconds=f"{self.limit_s:.0f}")

    def _warn_of_told(self, reply: Mapping[str, Any]) -> None:
        if "told" in reply:
            for sentence in decode(DirectorySyncReply, reply).told:
                self.warn(sentence)

    def _warn_of_left_out(self, reply: Mapping[str, Any]) -> None:
        """Name the files that are not stored although the program has ended. While it runs, most such files will be
        stored later."""
        self._warn_of_told(reply)
        left_out = reply.get("skipped", ())
        for line in left_out[:_MAX_NAMED]:
            self.warn(message("{file}; it is not stored in {uri}", file=line, uri=self.uri))
        if len(left_out) > _MAX_NAMED:
            more = len(left_out) - _MAX_NAMED
            self.warn(message("{count} more files and links are not stored in {uri}", count=more, uri=self.uri))


class EventFileSyncRunner(DirectorySyncRunner):
    """Stores the program's event files while it writes them. A job does not fail for its event files."""

    not_stored = "event files could not be stored in {uri}: {reason}"

    def __init__(self, loop: EventLoop, order: EventFileSyncOrder, directory: str) -> None:
        path = os.path.join(directory, order.path)
        super().__init__(loop, path, order.uri, bool(order.uri), order.every_s, _EVENT_FILES_LIMIT_S)
        self.job, self.since_ms = order.job, order.since_ms
        self._sent: Mapping[str, Any] = {}
        self._stored_files: List[Tuple[str, int, int]] = []

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """Add the directory, which exists from the start, to the program's variables."""
        os.makedirs(self.path, exist_ok=True)
        return {**variables, EVENT_FILE_DIR: self.path, TRAINER_DIR: variables.get(TRAINER_DIR) or self.path}

    def finish(self, on_end: OnEnd) -> None:
        super().finish(on_end)
        if self._on_end is not None:
            self.limit_last_copy(LAST_COPY_S)

    def has_news(self) -> bool:
        return self._files() != self._stored_files

    def store(self, last: bool, on_end: OnEnd) -> None:
        self._stored_files = self._files()

        def ended(problem: str) -> None:
            if problem:
                self._stored_files = []
            on_end(problem)

        request = EventFileSyncRequest(self.path, self.uri, self._sent, last, self.job, self.since_ms)
        self.run_helper(("howdah.checkpoints.event_file_sync",), request, ended, on_message=self._remember_sent)

    def _remember_sent(self, message: Mapping[str, Any]) -> None:
        self._sent = message.get("sent", self._sent)
        if "told" in message:
            self.warn(decode(EventFileSyncReply, message).told)

    def _files(self) -> List[Tuple[str, int, int]]:
        """List path, size and time of the directory's files."""
        found: List[Tuple[str, int, int]] = []
        for directory, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                found.append((path, status.st_size, status.st_mtime_ns))
                if len(found) >= _MAX_FILES:
                    return found
        return found


class LogSyncRunner(EventFileSyncRunner):
    """Stores what the program prints, where its logs would go with its container."""

    not_stored = "logs could not be stored in {uri}: {reason}"

    @classmethod
    def of_identity(cls, loop: EventLoop, identity: Identity) -> Optional[LogSyncRunner]:
        """Return the object that stores the logs of this attempt; None if they are in the job's directory already."""
        if not identity.stored_logs:
            return None
        return cls(loop, EventFileSyncOrder(identity.log_directory, identity.stored_logs, LOGS_EVERY_S), "")

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """Leave the variables as they are: the program need not know."""
        return dict(variables)

    def has_news(self) -> bool:
        """Return whether something was printed since the last copy. A large log is copied only at its end, because an
        object store cannot append to it."""
        size = sum(size for _, size, _ in self._files())
        return 0 < size < (_LARGE_LOGS_BYTES if self._on_end is None else size + 1) and super().has_news()

    def store_rest(self) -> None:
        """Copy what was printed after the last copy, in a blocking call, because the executor ends."""
        if not self.has_news():
            return
        import subprocess  # most executors do not need this module

        command = [sys.executable, "-m", "howdah.checkpoints.event_file_sync"]
        request = json.dumps(encode(EventFileSyncRequest(self.path, self.uri, self._sent, last=True)))
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command, input=request.encode(), stdout=subprocess.DEVNULL, cwd="/", timeout=LAST_COPY_S, check=False
            )


class DirectorySyncs:
    """Runs all directory syncs of one program as if they were one."""

    def __init__(
        self,
        loop: EventLoop,
        assignment: Assignment,
        directory: str,
        output: TaskOutput,
        logs: Optional[LogSyncRunner] = None,
    ) -> None:
        self.loop = loop
        self.checkpoints: Optional[CheckpointSyncRunner] = None
        self.event_files: Optional[EventFileSyncRunner] = None
        if assignment.checkpoint_sync is not None:
            limit_s = assignment.localise_s
            self.checkpoints = CheckpointSyncRunner(loop, assignment.checkpoint_sync, directory, limit_s)
        if assignment.event_file_sync is not None:
            self.event_files = EventFileSyncRunner(loop, assignment.event_file_sync, directory)
        self._runners = [runner for runner in (self.checkpoints, self.event_files, logs) if runner is not None]
        for runner in self._runners:
            runner.warn = output.warn if runner is self.checkpoints else output.tell

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """Name the local directories in the program's variables."""
        for runner in self._runners:
            variables = runner.local_variables(variables)
        return dict(variables)

    def fetch(self, orders: Orders, on_end: OnEnd) -> None:
        """Fetch the files that must be there before a program starts."""
        if self.checkpoints is not None:
            self.checkpoints.fetch(orders, on_end)
        else:
            self.loop.call_later(0.0, lambda: on_end(""))

    def begin(self) -> None:
        """Store the program's files, because the program runs now."""
        for runner in self._runners:
            runner.begin()

    def finish(self, on_end: OnEnd) -> None:
        """Store the files that the program has left at its end, all directories at the same time."""
        left = len(self._runners)

        def finished(_: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                on_end("")

        for runner in self._runners:
            runner.finish(finished)

    def stop(self, grace_s: float) -> None:
        for runner in self._runners:
            runner.stop(grace_s)
