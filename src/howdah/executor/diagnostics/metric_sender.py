"""Sends metrics to the master in the program's name, as `howdah.program.metric` does, without blocking the executor."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from howdah.executor.master_link.channel import Channel
from howdah.executor.master_link.heartbeat import Heartbeat
from howdah.wire import program_protocol as wire

_TIMEOUT_S, _RETRY_S = 10.0, 1.0
_TRY_AGAIN = (0, 500, 503, 504)

Point = Tuple[str, Optional[int], Optional[float], float]
"""Name, step, value (None is a gap), and time of a point."""


class MetricSender:
    """Sends one batch after another. While the master is away points are kept; if there are too many, the latest ones.

    `warn` writes a line to the task's log; it is called once when points are lost.
    """

    def __init__(self, link: Heartbeat, warn: Callable[[str], None]) -> None:
        self._link, self._warn = link, warn
        self._principal, self._key = "", b""
        self._channel: Optional[Channel] = None
        self._points: List[Point] = []
        self._waiting: List[Callable[[], None]] = []
        self._sent: Tuple[List[Point], List[Callable[[], None]]] = [], []
        self._warned = False

    def program_starts(self, epoch: int) -> None:
        """Send metrics in the name of the program of `epoch` from now on."""
        self.close()
        identity = self._link.identity
        self._principal = wire.program_principal(identity.task, identity.attempt, epoch)
        self._key = wire.program_key(identity.key, self._principal)
        self._warned = False

    def send(self, points: List[Point], tried: Callable[[], None]) -> None:
        """Send `points`, and call `tried` once the master has them, or could not be reached."""
        self._keep(self._points + points)
        self._waiting.append(tried)
        self._send()

    def close(self) -> None:
        """Forget the points that have not been sent."""
        if self._channel is not None:
            self._channel.close()
        self._channel, self._points = None, []
        self._sent = [], []
        self._waiting = []

    def _send(self) -> None:
        if not self._points or (self._channel is not None and self._channel.busy):
            return
        host, _, port = self._link.address.rpartition(":")
        if self._channel is None or self._channel.address != (host, int(port)):
            if self._channel is not None:
                self._channel.close()
            address = host, int(port)
            self._channel = Channel(self._link.loop, address, self._principal, self._key, self._answered, self._failed)
        self._sent, self._points, self._waiting = (self._points, self._waiting), [], []
        self._channel.post(f"{wire.PATH}metrics", {"points": self._sent[0]}, _TIMEOUT_S)

    def _keep(self, points: List[Point]) -> None:
        if len(points) > wire.MAX_POINTS:
            self._warn_once(f"the master was away for more than {wire.MAX_POINTS} of them")
        self._points = points[-wire.MAX_POINTS :]

    def _answered(self, message: Any) -> None:
        self._warn_once(str(message.get("problem", "")))
        self._go_on()

    def _failed(self, reason: str, status: int) -> None:
        if status in _TRY_AGAIN:
            self._keep(self._sent[0] + self._points)
            self._link.loop.call_later(_RETRY_S, self._send)
        else:
            self._warn_once(reason)
        self._go_on(status not in _TRY_AGAIN)

    def _go_on(self, send: bool = True) -> None:
        tried = self._sent[1]
        self._sent = [], []
        for call in tried:
            call()
        if send:
            self._send()

    def _warn_once(self, problem: str) -> None:
        if problem and not self._warned:
            self._warned = True
            self._warn(f"metrics are lost: {problem}")
