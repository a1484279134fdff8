"""Simulates executors that run no program: each keeps two connections and sends heartbeats, as a real one does."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from howdah.spec.codec import encode
from howdah.spec.usage import Usage
from howdah.wire import auth
from howdah.wire.messages import Goal, Orders, Phase, Status

PATH, POLL_PATH = "/v1/executor", "/v1/executor?wait=2"


class Channel:
    """Keeps one connection to the master alive."""

    def __init__(self, url: str, principal: str, key: bytes) -> None:
        self._address, self._principal, self._key = urlsplit(url).netloc, principal, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, message: Any) -> Any:
        """Return the answer's JSON; any status but 200 is a fault of the simulation."""
        host, _, port = self._address.partition(":")
        self._streams = self._streams or await asyncio.open_connection(host, int(port), limit=4 << 20)
        reader, writer = self._streams
        body = json.dumps(message, separators=(",", ":")).encode()
        signature = auth.sign(self._key, "request", self._principal, path, time.time(), body)
        head = f"POST {path} HTTP/1.1\r\nHost: {self._address}\r\n{auth.HEADER}: {signature}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(int(line.split(":")[1]) for line in answer.split("\r\n") if line.startswith("Content-Length"))
        text = await reader.readexactly(length)
        if " 200 " not in answer:
            raise SystemExit(f"{self._principal}: {answer.splitlines()[0]}: {text.decode()}")
        return json.loads(text)

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()


@dataclass
class Gang:
    """Simulates `count` executors of role `worker`; `running` and `heartbeats` count all of them."""

    url: str
    key: bytes
    count: int
    running: int = 0
    heartbeats: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _channels: list[Channel] = field(default_factory=list)

    async def start(self, at_once: int = 200) -> None:
        """Start the executors a few at a time; returns when all run."""
        for number in range(self.count):
            self._tasks.append(asyncio.create_task(self._executor(number)))
            if number % at_once == at_once - 1:
                await asyncio.sleep(0.2)
        while self.running < self.count:
            self._check()
            await asyncio.sleep(0.1)

    def _check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()
                raise SystemExit("a simulated executor has ended")

    async def stop(self) -> None:
        """Stop all executors."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels:
            channel.close()

    async def _executor(self, number: int) -> None:
        principal = auth.executor_principal(f"worker:{number}", 1)
        key = auth.derive(self.key, principal)
        polls, changes = Channel(self.url, principal, key), Channel(self.url, principal, key)
        self._channels += [polls, changes]
        python = "/usr/bin/python3 (3.11.2)"
        status = Status(
            task=f"worker:{number}",
            attempt=1,
            epoch=0,
            sequence=1,
            phase=Phase.HELLO,
            host=f"node{number}.example",
            pid=4711,
            python=python,
        )
        while True:
            answer = await polls.post(POLL_PATH, encode(status))
            self.heartbeats += 1
            mark = Orders(epoch=answer["epoch"], goal=Goal(answer["goal"])).digest
            status = replace(status, sequence=status.sequence + 2, orders_digest=mark, usage=self._used(status))
            if changed := self._obey(status, answer):
                await changes.post(PATH, encode(replace(changed, sequence=changed.sequence - 1)))
                self.running += changed.phase is Phase.RUNNING
                status = changed

    @staticmethod
    def _used(status: Status) -> Usage:
        """Return usage that differs each time, once its program runs."""
        if status.phase is not Phase.RUNNING:
            return status.usage
        swing = status.sequence % 200 / 1000
        return Usage(
            memory_mib=812.5 + 100 * swing,
            peak_mib=901.2,
            cpu=0.9 + swing,
            progress=min(1.0, status.sequence / 100_000),
        )

    @staticmethod
    def _obey(status: Status, answer: dict[str, Any]) -> Status | None:
        """Return the status that the orders lead to, None if they change nothing."""
        if status.phase is Phase.HELLO:
            return replace(status, phase=Phase.JOINED, epoch=answer["epoch"], ports={"main": 40000})
        if answer["goal"] == "run" and status.phase is Phase.JOINED:
            sums = {"log_bytes": 52_117, "cpu_s": 1042.7, "waits": 0.02, "read_mib": 311.5, "written_mib": 12.25}
            rates = {"read_mib_s": 1.25, "written_mib_s": 0.5, "received_mib_s": 11.75, "sent_mib_s": 10.5}
            network = {"received_mib": 8123.5, "sent_mib": 8001.25, "network": "node"}
            used = Usage(memory_mib=812.5, peak_mib=901.2, cpu=0.98, progress=0.25, **sums, **rates, **network)  # type: ignore[arg-type]
            return replace(status, phase=Phase.RUNNING, program_pid=4712, program_python="python3", usage=used)
        return None
