"""The program's event files, sent to the shared filesystem while it writes them: one helper at a time, and only when
there is something new. What is left at the program's end gets a minute; a job does not fail for its curves."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess
from howdah.executor.io.checkpoint_sync import LAST_S
from howdah.executor.process.process_tree import Reaper
from howdah.wire.messages import EventFileSyncOrder

DIRECTORY, OF_TRAINER = "HOWDAH_BOARD_DIR", "TENSORBOARD_LOGGING_DIR"
"""Ours, and that which Hugging Face's Trainer reads."""
_LIMIT_S, _STOP_S = 600.0, 1.0
_MOST_FILES = 10_000


class EventFileSync:
    """Of one program's directory. `note` writes a line for people."""

    def __init__(
        self, loop: EventLoop, reaper: Reaper, order: EventFileSyncOrder, directory: str, note: Callable[[str], None]
    ) -> None:
        self.loop, self.reaper, self.order, self.note = loop, reaper, order, note
        self.path = os.path.join(directory, order.path)
        self._sent: Mapping[str, Any] = {}
        self._seen: List[Tuple[str, int, int]] = []
        self._helper: Optional[HelperProcess] = None
        self._timers: List[Timer] = []
        self._done: Optional[Callable[[str], None]] = None
        self._told = ""

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """The program's variables, with the directory, which is there from the start."""
        os.makedirs(self.path, exist_ok=True)
        return {**variables, DIRECTORY: self.path, OF_TRAINER: variables.get(OF_TRAINER) or self.path}

    def begin(self) -> None:
        """The program runs."""
        self._done, self._seen = None, []
        if self.order.uri:
            self._again()

    def finish(self, done: Callable[[str], None]) -> None:
        """The program has ended: send what is left, then `done`."""
        self._done = done
        self._cancel()
        if self._helper is None:
            self._last()
        else:
            self._limit(LAST_S)

    def stop(self, grace: float) -> None:
        """Whoever waits waits a minute at most, as without it."""

    def _again(self) -> None:
        self._timers = [self.loop.call_later(self.order.every_s, self._look)]

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _look(self) -> None:
        found = self._files()
        if found == self._seen:
            self._again()
        else:
            self._seen = found
            self._run(_LIMIT_S)

    def _last(self) -> None:
        if self.order.uri and self._files() != self._seen:
            self._seen = self._files()
            self._run(LAST_S, last=True)
        else:
            self.loop.call_later(0.0, self._over)

    def _over(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done("")

    def _files(self) -> List[Tuple[str, int, int]]:
        found: List[Tuple[str, int, int]] = []
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                found.append((path, status.st_size, status.st_mtime_ns))
                if len(found) >= _MOST_FILES:
                    return found
        return found

    def _run(self, limit: float, last: bool = False) -> None:
        request = {"path": self.path, "uri": self.order.uri, "sent": self._sent, "last": last}
        try:
            self._helper = HelperProcess(
                self.loop, self.reaper, ("howdah.checkpoints.event_file_sync",), request, self._heard, self._ended
            )
        except OSError as error:
            reason = str(error)
            self.loop.call_later(0.0, lambda: self._ended(reason))
            return
        self._limit(limit)

    def _limit(self, seconds: float) -> None:
        self._cancel()
        self._timers = [self.loop.call_later(seconds, self._give_up)]

    def _give_up(self) -> None:
        if self._helper is not None:
            self._helper.stop(_STOP_S)

    def _heard(self, message: Mapping[str, Any]) -> None:
        self._sent = message.get("sent", self._sent)

    def _ended(self, problem: str) -> None:
        self._helper = None
        self._cancel()
        if problem:
            self._seen = []
        if problem and problem != self._told:
            self._told = problem
            self.note(f"event files could not be sent to {self.order.uri}: {problem}")
        if self._done is None:
            self._again()
        elif problem:
            self._over()
        else:
            self._last()
