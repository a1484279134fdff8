"""The executor's line to its master: a long poll that brings orders, and a second connection that brings news at once.

Silence has a limit: when the master has not been heard for as long as its lease, or does not want this attempt, the
link is given up. Before that it looks whether another master has taken over, who leaves word in the job's directory.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Callable, List, Mapping, Optional, Set, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.identity import Identity
from howdah.executor.io.task_output import Readable
from howdah.executor.master_link.channel import Channel
from howdah.executor.master_link.master_discovery import find_master
from howdah.executor.process.process_tree import Reaper
from howdah.spec.codec import decode, encode
from howdah.wire.messages import NOT_HEARD, NOT_WANTED, LogChunk, LogRequest, Orders, Status

_PATH = "/v1/executor"
_WAIT_S = 2
_TIMEOUT_S = 10.0
_RETRY_S = 0.5
_LOOK_AFTER_S, _LOOK_AGAIN_S = 3.0, 1.0
_UNWANTED = (403, 409, 410)
_CHUNK_LIMIT = 1 << 20


class Heartbeat:
    """Sends `status()` and hands orders to `obey`; `lost(exit status, reason)` is called when it is given up,
    `moved(host and port)` when another master has taken over."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: Reaper,
        identity: Identity,
        status: Callable[[], Status],
        obey: Callable[[Orders], None],
        lost: Callable[[int, str], None],
    ) -> None:
        self.loop, self.status, self.obey, self.lost = loop, status, obey, lost
        self.identity, self.reaper = identity, reaper
        self.moved: Callable[[Tuple[str, int]], None] = lambda _: None
        self._turn_to(identity.master)
        self._finding_master = False
        self._sequence = 0
        self._news_waiting = False
        self._chunks: List[LogChunk] = []
        self._answered: Set[int] = set()
        self._heard_at, self._lease = time.monotonic(), Orders.lease_s
        self._leased_at = self._beat_at = self._news_at = self._heard_at
        self._closed, self._problem = False, ""

    def _turn_to(self, where: Tuple[str, int]) -> None:
        who, key = self.identity.principal, self.identity.key
        self.where = f"{where[0]}:{where[1]}"
        self._beat = Channel(self.loop, where, who, key, self._beat_answered, self._beat_failed)
        self._news = Channel(self.loop, where, who, key, self._news_answered, self._news_failed)

    def start(self) -> None:
        """Say hello, and keep asking."""
        self._poll()
        self._check_lease()

    def send_now(self) -> None:
        """The status has changed: tell now."""
        if self._closed:
            return
        if self._news.busy:
            self._news_waiting = True
            return
        self._news_waiting = False
        self._news_at = time.monotonic()
        self._news.post(_PATH, self._message(self._take_chunks()), _TIMEOUT_S)

    def _take_chunks(self) -> Tuple[LogChunk, ...]:
        """As many pieces of logs as one message may carry: the master takes 8 MiB, and a byte may be six in JSON."""
        size = count = 0
        for chunk in self._chunks:
            size += len(chunk.text)
            if count and size > _CHUNK_LIMIT:
                break
            count += 1
        taken, self._chunks = self._chunks[:count], self._chunks[count:]
        return tuple(taken)

    def answer_log_requests(self, requests: Tuple[LogRequest, ...], logs: Mapping[str, Readable]) -> None:
        """Send what is asked for, once; again if the message with it was lost."""
        fresh = [one for one in requests if one.request not in self._answered and one.stream in logs]
        self._answered = {one.request for one in requests}
        for one in fresh:
            log = logs[one.stream]
            offset, data = log.read(one.offset, min(one.limit, _CHUNK_LIMIT))
            self._chunks.append(LogChunk(one.request, offset, log.size, data.decode("latin-1")))
        if fresh:
            self.send_now()

    def answer(self, chunk: LogChunk) -> None:
        """Send what was asked for and took its time."""
        self._chunks.append(chunk)
        self.send_now()

    def close(self) -> None:
        """No more messages."""
        self._closed = True
        self._beat.close()
        self._news.close()

    def _message(self, chunks: Tuple[LogChunk, ...] = ()) -> Any:
        self._sequence += 1
        return encode(dataclasses.replace(self.status(), sequence=self._sequence, chunks=chunks))

    def _poll(self) -> None:
        if not self._closed and not self._beat.busy:
            self._beat_at = time.monotonic()
            self._beat.post(f"{_PATH}?wait={_WAIT_S}", self._message(), _WAIT_S + _TIMEOUT_S)

    def _beat_answered(self, message: Any) -> None:
        self._heard(message, self._beat_at)
        self.loop.call_later(0.0, self._poll)

    def _news_answered(self, message: Any) -> None:
        self._heard(message, self._news_at)

    def _heard(self, message: Any, asked_at: float) -> None:
        """The lease runs from when this executor spoke: the master can't have heard it earlier, however late its answer
        comes."""
        self._heard_at, self._leased_at = time.monotonic(), max(self._leased_at, asked_at)
        orders = decode(Orders, message)
        self._lease = orders.lease_s
        self.obey(orders)
        if (self._news_waiting or self._chunks) and not self._news.busy:
            self.send_now()

    def _beat_failed(self, reason: str, status: int) -> None:
        if not self._unwanted(reason, status):
            self.loop.call_later(_RETRY_S, self._poll)

    def _news_failed(self, reason: str, status: int) -> None:
        self._answered.clear()
        if not self._unwanted(reason, status):
            self.loop.call_later(_RETRY_S, self.send_now)

    def _unwanted(self, reason: str, status: int) -> bool:
        if status in _UNWANTED:
            self._give_up(NOT_WANTED, f"the master at {self.where} does not want this attempt: {reason}")
        self._problem = reason
        return status in _UNWANTED

    def _check_lease(self) -> None:
        now = time.monotonic()
        silence, left = now - self._heard_at, self._leased_at + self._lease - now
        if left <= 0:
            silent = f"the master at {self.where} was not heard for {now - self._leased_at:.0f} s"
            self._give_up(NOT_HEARD, f"{silent} ({self._problem or 'no answer'})")
        elif not self._closed:
            if silence >= _LOOK_AFTER_S and not self._finding_master and self.identity.directory:
                self._finding_master = True
                find_master(self.loop, self.reaper, self.identity.directory, self._master_found)
            self.loop.call_later(min(1.0, left + 0.01), self._check_lease)

    def _master_found(self, where: Optional[Tuple[str, int]]) -> None:
        """Word of a master, or none yet: then it is looked for again a while later."""
        if where is not None and f"{where[0]}:{where[1]}" != self.where and not self._closed:
            self._beat.close()
            self._news.close()
            self._turn_to(where)
            self.moved(where)
            self._answered.clear()
            self._poll()
        self.loop.call_later(_LOOK_AGAIN_S, self._look_again)

    def _look_again(self) -> None:
        self._finding_master = False

    def _give_up(self, code: int, reason: str) -> None:
        if not self._closed:
            self.close()
            self.lost(code, reason)
