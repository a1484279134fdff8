"""`Heartbeat` sends the executor's status: by a long poll that returns orders, and by a second connection at once.

The link is given up when the master was silent for as long as its lease, or refuses this attempt. Before that the
executor searches for another master that has taken over, which writes its address to the job's directory.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, List, Mapping, Optional, Set, Tuple

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import Readable
from howdah.executor.master_link.channel import Channel
from howdah.executor.master_link.master_discovery import find_master
from howdah.spec.codec import decode, encode
from howdah.wire.messages import NOT_HEARD, NOT_WANTED, LogChunk, LogRequest, Orders, Status

_PATH = "/v1/executor"
_WAIT_S = 2
_TIMEOUT_S = 10.0
_RETRY_S = 0.5
_MIN_REPEAT_S = 0.05
"""Least seconds from one poll to the next when the executor had its orders already. The master holds such a poll until
the orders change; a master that answers at once would be asked a thousand times a second."""
_SEARCH_AFTER_S, _SEARCH_AGAIN_S = 3.0, 1.0
_REFUSALS = (403, 409, 410)
_CHUNK_LIMIT = 1 << 20


class Heartbeat:
    """Sends `status()` and passes orders to `obey`.

    It calls `on_lost(exit status, reason)` when it gives up, and `on_master_changed(host and port)` when another master
    has taken over.
    """

    def __init__(
        self,
        loop: EventLoop,
        identity: Identity,
        status: Callable[[], Status],
        obey: Callable[[Orders], None],
        on_lost: Callable[[int, str], None],
    ) -> None:
        self.loop, self.status, self.obey, self.on_lost = loop, status, obey, on_lost
        self.identity = identity
        self.on_master_changed: Callable[[Tuple[str, int]], None] = lambda _: None
        self._connect(identity.master)
        self._finding_master = False
        self._sequence = 0
        self._update_pending = False
        self._chunks: List[LogChunk] = []
        self._answered: Set[int] = set()
        self._poll_orders: Optional[Orders] = None
        self._next_poll = Timer(self._poll)
        self._heard_at, self._lease = self.loop.time(), Orders.lease_s
        self._leased_at = self._poll_at = self._update_at = self._heard_at
        self._closed, self._problem = False, ""

    def _connect(self, master: Tuple[str, int]) -> None:
        principal, key = self.identity.principal, self.identity.key
        self.address = f"{master[0]}:{master[1]}"
        self._poll_channel = Channel(self.loop, master, principal, key, self._poll_answered, self._poll_failed)
        self._update_channel = Channel(self.loop, master, principal, key, self._update_answered, self._update_failed)

    def start(self) -> None:
        """Send the first status, and poll from then on."""
        self._poll()
        self._check_lease()

    def send_now(self) -> None:
        """Send the status now, because it has changed."""
        if self._closed:
            return
        if self._update_channel.busy:
            self._update_pending = True
            return
        self._update_pending = False
        self._update_at = self.loop.time()
        self._update_channel.post(_PATH, self._message(self._take_chunks()), _TIMEOUT_S)

    def _take_chunks(self) -> Tuple[LogChunk, ...]:
        """Take as many log chunks as fit in a message: the master accepts 8 MiB, and a byte may be six in JSON."""
        size = count = 0
        for chunk in self._chunks:
            size += len(chunk.text)
            if count and size > _CHUNK_LIMIT:
                break
            count += 1
        taken, self._chunks = self._chunks[:count], self._chunks[count:]
        return tuple(taken)

    def answer_log_requests(self, requests: Tuple[LogRequest, ...], logs: Mapping[str, Readable]) -> None:
        """Answer each request for a log once, and again if the message with the answer was lost."""
        new = [request for request in requests if request.request not in self._answered and request.stream in logs]
        self._answered = {request.request for request in requests}
        for request in new:
            log = logs[request.stream]
            offset, data = log.read(request.offset, min(request.limit, _CHUNK_LIMIT))
            text = data.decode("latin-1")
            self._chunks.append(LogChunk(request=request.request, offset=offset, size=log.size, text=text))
        if new:
            self.send_now()

    def answer(self, chunk: LogChunk) -> None:
        """Send an answer that took some time."""
        self._chunks.append(chunk)
        self.send_now()

    def close(self) -> None:
        """Send no more messages."""
        self._closed = True
        self._poll_channel.close()
        self._update_channel.close()

    def _message(self, chunks: Tuple[LogChunk, ...] = ()) -> Any:
        self._sequence += 1
        return encode(dataclasses.replace(self.status(), sequence=self._sequence, chunks=chunks))

    def _poll(self) -> None:
        self._next_poll.cancel()
        if not self._closed and not self._poll_channel.busy:
            self._poll_at = self.loop.time()
            self._poll_channel.post(f"{_PATH}?wait={_WAIT_S}", self._message(), _WAIT_S + _TIMEOUT_S)

    def _poll_later(self, seconds: float) -> None:
        self._next_poll.cancel()
        self._next_poll = self.loop.call_later(seconds, self._poll)

    def _poll_answered(self, message: Any) -> None:
        known, self._poll_orders = self._poll_orders, self._handle_answer(message, self._poll_at)
        min_s = _MIN_REPEAT_S if known is not None and _want_the_same(known, self._poll_orders) else 0.0
        self._poll_later(max(0.0, self._poll_at + min_s - self.loop.time()))

    def _update_answered(self, message: Any) -> None:
        self._handle_answer(message, self._update_at)

    def _handle_answer(self, message: Any, requested_at: float) -> Orders:
        """Take an answer of the master.

        The lease runs from when the request was sent: the master can't have heard it earlier, however late the answer
        comes.
        """
        self._heard_at, self._leased_at = self.loop.time(), max(self._leased_at, requested_at)
        orders = decode(Orders, message)
        self._lease = orders.lease_s
        self.obey(orders)
        if (self._update_pending or self._chunks) and not self._update_channel.busy:
            self.send_now()
        return orders

    def _poll_failed(self, reason: str, status: int) -> None:
        if not self._is_refused(reason, status):
            self._poll_later(_RETRY_S)

    def _update_failed(self, reason: str, status: int) -> None:
        self._answered.clear()
        if not self._is_refused(reason, status):
            self.loop.call_later(_RETRY_S, self.send_now)

    def _is_refused(self, reason: str, status: int) -> bool:
        if status in _REFUSALS:
            self._close_as_lost(NOT_WANTED, f"the master at {self.address} does not want this attempt: {reason}")
        self._problem = reason
        return status in _REFUSALS

    def _check_lease(self) -> None:
        now = self.loop.time()
        silence, left = now - self._heard_at, self._leased_at + self._lease - now
        if left <= 0:
            silent = f"the master at {self.address} was not heard for {now - self._leased_at:.0f} s"
            self._close_as_lost(NOT_HEARD, f"{silent} ({self._problem or 'no answer'})")
        elif not self._closed:
            if silence >= _SEARCH_AFTER_S and not self._finding_master and self.identity.directory:
                self._finding_master = True
                find_master(self.loop, self.identity.directory, self._master_found)
            self.loop.call_later(min(1.0, left + 0.01), self._check_lease)

    def _master_found(self, master: Optional[Tuple[str, int]]) -> None:
        """Use `master` from now on, if it is another one. The search is repeated later in any case."""
        if master is not None and f"{master[0]}:{master[1]}" != self.address and not self._closed:
            self._poll_channel.close()
            self._update_channel.close()
            self._connect(master)
            self.on_master_changed(master)
            self._answered.clear()
            self._poll()
        self.loop.call_later(_SEARCH_AGAIN_S, self._allow_search)

    def _allow_search(self) -> None:
        self._finding_master = False

    def _close_as_lost(self, code: int, reason: str) -> None:
        if not self._closed:
            self.close()
            self.on_lost(code, reason)


def _want_the_same(one: Orders, other: Orders) -> bool:
    """Compare the content of two orders. Whole orders with a notice always differ, by the seconds that remain until the
    preemption."""
    return one.digest == other.digest and one.log_requests == other.log_requests
