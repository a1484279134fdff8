"""Limits the resources that callers may use before they have proved who they are.

A *stranger* is a connection on which no request has come yet whose head proves who sends it. Any host may open a
connection, so strangers are few, use little, and do not stay (`ConnectionLimits`). When there are too many, a new
connection replaces the oldest stranger of the address with the most strangers. So a caller that proves at once who it
is, as executors do, always gets through, even from the address of an attacker.
"""

from __future__ import annotations

import collections
import resource
import sys
import time
from collections.abc import Callable
from typing import Protocol

from howdah.spec.values import dataclass

MAX_BODY = 4 << 10
"""The most bytes of a body that a stranger may send: an action's token and a few values."""
MAX_READS = 256
"""The most pieces in which a stranger's request may come: each piece costs as much as a large one."""
WRITE_BUFFER = 16 << 10
"""Bytes of an answer that are buffered for a caller who does not read them."""
LOG_AGAIN_S = 60.0
"""Seconds between two lines of the log."""


class Closable(Protocol):
    """A connection as the limits see it."""

    peer: str
    """Address of the caller."""
    since: float
    """Loop time at which the wait for its next request began."""
    deadline: float
    """Loop time at which the connection is closed if it is still a stranger."""
    stranger: bool
    """True until the caller has proved who it is; set by this module."""

    @property
    def busy(self) -> bool:
        """Return whether a request is being answered."""

    def abort(self) -> None:
        """Close the connection at once, and drop what is still to be sent."""


@dataclass(frozen=True)
class Limits:
    """The limits of connections, in numbers and in seconds."""

    strangers: int = 512
    """The most strangers; never more than a quarter of the descriptors that this process may open."""
    per_peer: int = 64
    """The most strangers of one address that have been connected for `settle_s`."""
    settle_s: float = 1.0
    """Seconds in which a new connection may prove who sends its requests."""
    request_s: float = 10.0
    """Seconds from connecting, or from the last answer, within which a stranger's next request must be complete."""
    answer_s: float = 60.0
    """Seconds within which a stranger must have read an answer."""
    visitors: int = 1024
    """The most connections of callers with a token; callers that sign (executors, programs, the client) do not
    count."""


class ConnectionLimits:
    """Limits the strangers and visitors of one server. `report` writes a line to the log, at most one in
    LOG_AGAIN_S."""

    def __init__(
        self,
        limits: Limits,
        report: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        maximum = limits.strangers if descriptors == resource.RLIM_INFINITY else min(limits.strangers, descriptors // 4)
        self.limits, self._maximum = limits, max(1, maximum)
        self._strangers: dict[str, dict[Closable, None]] = {}
        self._visitors: dict[Closable, None] = {}
        self.count = 0
        self._turned_away: collections.Counter[str] = collections.Counter()
        self._last_peer = ""
        self._reported_at = float("-inf")
        self._report, self._clock = report or _print, clock

    def add(self, connection: Closable) -> None:
        """Count a new connection; close one if there are too many."""
        self._strangers.setdefault(connection.peer, {})[connection] = None
        connection.stranger = True
        self.count += 1
        if self.count > self._maximum:
            crowd = max(self._strangers.values(), key=len)
            self.turn_away(next(iter(crowd)), f"more than {self._maximum} at once")

    def identified(self, connection: Closable, signed: bool) -> None:
        """Stop counting a connection as a stranger: its caller has proved who it is."""
        self._leave_strangers(connection)
        if not signed:
            self._visitors[connection] = None
            if len(self._visitors) > self.limits.visitors:
                idle = (each for each in self._visitors if not each.busy and each is not connection)
                self.turn_away(next(idle, connection), f"more than {self.limits.visitors} with a token")

    def remove(self, connection: Closable) -> None:
        """Forget a connection that was closed."""
        self._leave_strangers(connection)
        self._visitors.pop(connection, None)

    def _leave_strangers(self, connection: Closable) -> None:
        if connection.stranger:
            connection.stranger = False
            crowd = self._strangers[connection.peer]
            del crowd[connection]
            if not crowd:
                del self._strangers[connection.peer]
            self.count -= 1

    def turn_away(self, connection: Closable, why: str) -> None:
        """Close a connection, and report it in the log."""
        self.remove(connection)
        connection.abort()
        self.count_refusal(connection.peer, why)

    def count_refusal(self, peer: str, why: str) -> None:
        """Count a caller that was refused before it had proved who it is."""
        self._turned_away[why] += 1
        self._last_peer = peer
        self._report_refusals()

    def sweep(self, now: float) -> None:
        """Close strangers that are overdue, and the surplus of strangers from one address; `now` is loop time."""
        limits = self.limits
        for crowd in list(self._strangers.values()):
            excess = len(crowd) - limits.per_peer
            for connection in list(crowd):
                if now > connection.deadline:
                    self.turn_away(connection, "sending a request, or taking the answer, took too long")
                elif excess > 0 and now - connection.since > limits.settle_s:
                    self.turn_away(connection, f"more than {limits.per_peer} from one address")
                excess -= 1
        self._report_refusals()

    def _report_refusals(self) -> None:
        now = self._clock()
        if not self._turned_away or now - self._reported_at < LOG_AGAIN_S:
            return
        self._reported_at = now
        reasons = "; ".join(f"{count} times: {why}" for why, count in self._turned_away.most_common())
        self._turned_away.clear()
        self._report(f"callers that had not shown who they are were refused (last: {self._last_peer}): {reasons}")


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
