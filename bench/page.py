"""Measures what open pages cost a master, and how large and fast the answers of a large job are."""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.memory import simulated_master
from bench.processes import family_cpu_s, resident_mb
from bench.report import Report
from bench.simulated_executors import Gang
from bench.simulated_master import ID
from bench.temp_home import temp_home
from howdah.wire import auth

PAGES, TASKS, MANY_TASKS = 50, 200, 1000
POLL_S, SETTLE_S, WINDOW_S, ROUNDS = 2.0, 5.0, 20.0, 5
CPU_SHARE, FIRST_ANSWER_S = 0.20, 0.2
TABS = ("tasks", "tasks", "tasks", "timeline", "series?name=cpu,memory_mib&points={number}")
"""What pages show, one after the other; each asks for the job, too. Nobody's chart is as wide as another's, so each
`series` is read for itself, by processes of the master's that count as its own."""


@dataclass
class Page:
    """Requests what an open page does, every `POLL_S`, on one kept-alive connection."""

    url: str
    token: str
    shows: str
    answers: int = 0
    bytes: int = 0
    slowest_s: float = 0.0
    _versions: dict[str, int] = field(default_factory=dict)

    async def watch(self, delay_s: float) -> None:
        """Request everything again and again until it is cancelled."""
        await asyncio.sleep(delay_s)
        host, _, port = urlsplit(self.url).netloc.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=4 << 20)
        try:
            while True:
                for path in ("", f"/{self.shows}"):
                    await self.ask(reader, writer, path)
                await asyncio.sleep(POLL_S)
        finally:
            writer.close()

    async def ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> Any:
        """Return the JSON of one answer."""
        began = time.perf_counter()
        target = f"/api/v1/jobs/{ID}{path}{'&' if '?' in path else '?'}token={self.token}"
        if path in self._versions:
            target += f"&since={self._versions[path]}"
        head = f"GET {target} HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nAccept-Encoding: gzip\r\n\r\n"
        writer.write(head.encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(int(line.split(":")[1]) for line in answer.split("\r\n") if line.startswith("Content-Length"))
        body = await reader.readexactly(length)
        self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
        if " 200 " not in answer:
            raise SystemExit(f"{path}: {answer.splitlines()[0]}: {body.decode()}")
        self.answers, self.bytes = self.answers + 1, self.bytes + length
        value = json.loads(gzip.decompress(body) if "Content-Encoding: gzip" in answer else body)
        self._versions[path] = value["version"]
        return value


def measure(report: Report) -> None:
    """Measure pages that stay open, then one that opens."""
    with temp_home() as home:
        asyncio.run(_watched(report, home))
        asyncio.run(_opened(report, home))


async def _watched(report: Report, home: Path) -> None:
    directory, key = home / "watched", secrets.token_bytes(32)
    directory.mkdir()
    with simulated_master(directory, TASKS, key) as (pid, url, _):
        gang = Gang(url, key, TASKS)
        await gang.start()
        await asyncio.sleep(SETTLE_S)
        alone = await _spent(pid)
        token = auth.view_token(key)
        pages = [Page(url, token, TABS[n % len(TABS)].format(number=100 + n)) for n in range(PAGES)]
        watching = [asyncio.create_task(page.watch(POLL_S * n / PAGES)) for n, page in enumerate(pages)]
        await asyncio.sleep(SETTLE_S)
        for task in watching:
            if task.done():
                task.result()
        before = sum(page.answers for page in pages), sum(page.bytes for page in pages)
        watched = await _spent(pid)
        answers, sent = sum(page.answers for page in pages) - before[0], sum(page.bytes for page in pages) - before[1]
        report.figure(f"{TASKS} tasks, nobody looks: master's CPU", [alone * 100], "%")
        report.figure(f"{TASKS} tasks, {PAGES} pages: master's CPU", [watched * 100], "%")
        report.figure("answers a second", [answers / WINDOW_S], "/s")
        report.figure("a page takes", [sent / WINDOW_S / PAGES / 1e3], "kB/s")
        report.figure("slowest answer of each page", [page.slowest_s for page in pages])
        report.figure("master, resident", [resident_mb(pid)], "MB")
        report.target(f"{PAGES} open pages of a {TASKS}-task job", watched, CPU_SHARE, " of a core")
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await gang.stop()


async def _spent(pid: int) -> float:
    """Return the share of a core that was used in the window."""
    began, before = time.monotonic(), family_cpu_s(pid)
    await asyncio.sleep(WINDOW_S)
    return (family_cpu_s(pid) - before) / (time.monotonic() - began)


async def _opened(report: Report, home: Path) -> None:
    directory, key = home / "opened", secrets.token_bytes(32)
    directory.mkdir()
    with simulated_master(directory, MANY_TASKS, key) as (_, url, _):
        gang = Gang(url, key, MANY_TASKS)
        await gang.start()
        await asyncio.sleep(SETTLE_S)
        host, _, port = urlsplit(url).netloc.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=4 << 20)
        times: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            await asyncio.sleep(POLL_S)  # what was rendered is old
            for path in ("", "/tasks", "/timeline"):
                page = Page(url, auth.view_token(key), path)
                value = await page.ask(reader, writer, path)
                times.setdefault(path, []).append(page.slowest_s)
                if len(times[path]) == ROUNDS:
                    name = path.strip("/") or "job"
                    report.figure(f"{MANY_TASKS} tasks: {name}, rendered and sent", times[path])
                    report.figure(f"{MANY_TASKS} tasks: {name}, sent", [page.bytes / 1e3], "kB")
                    report.figure(f"{MANY_TASKS} tasks: {name}, as JSON", [len(json.dumps(value)) / 1e3], "kB")
        report.target(f"tasks of a {MANY_TASKS}-task job", sorted(times["/tasks"])[ROUNDS // 2], FIRST_ANSWER_S, " s")
        writer.close()
        await gang.stop()
