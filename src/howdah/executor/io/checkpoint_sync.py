"""The program's checkpoints, here and on the shared filesystem: fetched before it starts, stored while it runs.

Helpers do it, one at a time. The last one does not end with the program: what was learned would be lost.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Mapping, Optional

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.process_tree import Reaper
from howdah.spec import uris
from howdah.wire.messages import CheckpointSyncOrder, Orders

DIRECTORY, RESUME = "HOWDAH_CHECKPOINT_DIR", "HOWDAH_RESUME_FROM"
LAST_S = 60.0
"""What a stopped program has left must be stored within this."""
_STOP_S = 1.0
_SETTLE_S, _LAST_SETTLE_S = 5.0, 1.0
Done = Callable[[str], None]


class CheckpointSync:
    """`fetched` is the epoch for which the directory is ready. `note` writes a line for people."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        order: CheckpointSyncOrder,
        directory: str,
        limit: float,
        note: Callable[[str], None],
    ) -> None:
        self.loop, self.reaper, self.order, self.limit, self.note = loop, reaper, order, limit, note
        self.path, self.directory = os.path.join(directory, order.path), directory
        self.fetched = 0
        self._helper: Optional[HelperProcess] = None
        self._next: Optional[Timer] = None
        self._limit: Optional[Timer] = None
        self._last_limit: Optional[Timer] = None
        self._done: Optional[Done] = None
        self._reason = self._told = ""
        self._last = False

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """The program's variables, which name the shared directory, for the one here."""
        local = {**variables, DIRECTORY: self.path}
        if variables.get(RESUME):
            local[RESUME] = os.path.normpath(os.path.join(self.path, uris.below(variables[RESUME], self.order.uri)))
        return local

    def fetch(self, orders: Orders, done: Done) -> None:
        """Before a program starts; then `done(problem)`."""
        epoch = orders.epoch
        request = {"resume": orders.environment.get(RESUME, ""), "valid": self.order.valid}

        def fetched(problem: str) -> None:
            self.fetched = 0 if problem else epoch
            done(problem)

        self._run("down", request, self.limit, fetched)

    def begin(self) -> None:
        """The program runs: store what it writes, from time to time."""
        if self.order.writes:
            self._next = self.loop.call_later(self.order.every_s, self._store)

    def finish(self, done: Done) -> None:
        """The program has ended: store what it has left, then `done(problem)`."""
        self.fetched = 0
        if not self.order.writes:
            self.loop.call_later(0.0, lambda: done(""))
            return
        self._done = done
        if self._next is not None:
            self._next.cancel()
        if self._helper is None:
            self._store_last()

    def stop(self, grace: float) -> None:
        """What is being fetched is given up at once; what is being stored gets a minute."""
        if self._done is not None:
            wait = max(grace, LAST_S)
            late = f"it took longer than {wait:.0f} s after the program's end"
            self._last_limit = self._last_limit or self.loop.call_later(wait, lambda: self._give_up(late))
        else:
            self._give_up("stopped while checkpoints were fetched")

    def _store(self) -> None:
        self._run("up", {"replace": self.order.replaces, "settle_s": _SETTLE_S}, self.limit, self._stored)

    def _store_last(self) -> None:
        self._last = True
        self._run(
            "up", {"replace": self.order.replaces, "settle_s": _LAST_SETTLE_S, "last": True}, self.limit, self._stored
        )

    def _stored(self, problem: str) -> None:
        if problem and problem != self._told:
            self._told = problem
            self.note(f"checkpoints could not be stored in {self.order.uri}: {problem}")
        if self._last:
            done, self._done, self._last = self._done, None, False
            if self._last_limit is not None:
                self._last_limit.cancel()
                self._last_limit = None
            assert done is not None
            done(problem)
        elif self._done is not None:
            self._store_last()
        else:
            self._next = self.loop.call_later(self.order.every_s, self._store)

    def _run(self, verb: str, request: Mapping[str, Any], limit: float, ended: Done) -> None:
        self._reason = ""

        def over(problem: str) -> None:
            self._helper = None
            if self._limit is not None:
                self._limit.cancel()
                self._limit = None
            ended(self._reason or problem)

        argv = ("howdah.checkpoints.directory_sync", verb)
        whole = {"path": self.path, "root": self.directory, "uri": self.order.uri, **request}
        try:
            self._helper = HelperProcess(self.loop, self.reaper, argv, whole, lambda _: None, over)
        except OSError as error:
            reason = str(error)
            self.loop.call_later(0.0, lambda: ended(reason))
            return
        self._limit = self.loop.call_later(limit, lambda: self._give_up(f"it took longer than {limit:.0f} s"))

    def _give_up(self, reason: str) -> None:
        if self._helper is not None:
            self._reason = self._reason or reason
            self._helper.stop(_STOP_S)
