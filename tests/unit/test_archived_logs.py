"""Tests how the history server copies logs of ended jobs: from late nodes, slow nodes, and nodes without logs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from history_jobs import BEGAN, begun, ended, launched
from history_jobs import write as write_log

from howdah.engines.local.engine import LocalEngine
from howdah.errors import AnswerTimeout, EngineUnavailable, NotFound, NotReady
from howdah.logs import archived_logs
from howdah.logs.archived_logs import ArchivedLogs
from howdah.logs.query import LogQuery
from howdah.spec import TaskId
from howdah.wire.messages import LogChunk

JOB, TASK, OTHER = "local-1", TaskId("worker", 0), TaskId("worker", 1)
SOON_S = 60.0
HOURS_LONG = 1 << 40
"""Bytes of a log without content, which nobody gets to the end of."""


class Engine(LocalEngine):
    """This machine's, with nodes that take their time: who asks for a log waits for `open`, and gets all of it at last,
    or never where it `goes_on`."""

    def __init__(self, home: Path) -> None:
        super().__init__({"local_home": str(home)})
        self.is_settled, self.asked, self.open = True, 0, threading.Event()
        self.open.set()
        self.goes_on = False

    def logs_complete(self, job_id: str) -> bool:
        return self.is_settled

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        self.asked += 1
        if task == TASK:
            assert self.open.wait(SOON_S)
        yield from super().logs(job_id, task, stream)
        while self.goes_on:
            time.sleep(0.01)
            yield f"{OTHER} attempt 1 stdout", b"and on\n"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path / "home")
    (tmp_path / "home" / "jobs" / JOB).mkdir(parents=True)
    write(tmp_path, OTHER, 1, "the other")
    return made


def write(base: Path, task: TaskId, attempt: int, text: str) -> None:
    directory = base / "home" / "jobs" / JOB / "tasks" / task.slug / str(attempt)
    directory.mkdir(parents=True)
    (directory / "stdout").write_text(text)


def ask(
    tmp_path: Path, engine: Engine, questions: Callable[[Callable[..., Awaitable[LogChunk]]], Awaitable[None]]
) -> None:
    async def main() -> None:
        kept = ArchivedLogs(tmp_path / "printed")
        try:
            await questions(lambda task, attempt=1: kept.read(engine, JOB, task, "stdout", attempt, 0, 1000))
        finally:
            kept.close()

    asyncio.run(asyncio.wait_for(main(), 2 * SOON_S))


def test_a_node_that_is_late_is_waited_for_and_one_that_is_done_is_not_asked_again(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archived_logs, "REFRESH_S", 0.0)
    monkeypatch.setattr(archived_logs, "REFRESH_FACTOR", 0)
    write(tmp_path, TASK, 1, "first")
    engine.is_settled = False

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        assert (await read(TASK)).text == "first"
        with pytest.raises(NotReady):
            await read(TASK, 2)
        write(tmp_path, TASK, 2, "second")
        engine.is_settled = True
        found = None
        while found is None:  # what there was is shown while it is looked for again
            with contextlib.suppress(NotReady):
                found = await read(TASK, 2)
            await asyncio.sleep(0.01)
        assert found.text == "second"
        asked = engine.asked
        assert [(await read(TASK, attempt)).text for attempt in (1, 2)] == ["first", "second"]
        with pytest.raises(NotFound):
            await read(TASK, 3)
        assert engine.asked == asked

    ask(tmp_path, engine, questions)


def test_a_slow_copy_holds_up_no_other_request(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, TASK, 1, "at last")
    engine.open.clear()

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        with monkeypatch.context() as quickly:
            quickly.setattr(archived_logs, "WAIT_S", 0.01)
            for _ in range(2 * archived_logs.PARALLEL):
                with pytest.raises(AnswerTimeout):
                    await read(TASK)
        assert (await read(OTHER)).text == "the other"
        engine.open.set()
        assert (await read(TASK)).text == "at last"
        assert engine.asked == 2  # the same copy was gone on with

    ask(tmp_path, engine, questions)


def test_jobs_of_one_id_on_two_clusters_have_copies_of_their_own(tmp_path: Path, engine: Engine) -> None:
    other = Engine(tmp_path / "elsewhere" / "home")
    write(tmp_path / "elsewhere", OTHER, 1, "of another cluster")

    async def questions(kept: ArchivedLogs) -> None:
        for archive, text in ((engine, "the other"), (other, "of another cluster")):
            directory = f"{archive.home}/jobs/{JOB}"
            assert (await kept.read(archive, JOB, OTHER, "stdout", 1, 0, 1000, directory)).text == text

    asked(tmp_path, questions)


def test_a_copy_that_takes_too_long_is_given_up(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archived_logs, "COPY_S", -1.0)

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        with pytest.raises(NotReady, match="could not be brought here") as refused:
            await read(OTHER)
        assert isinstance(refused.value.__cause__, EngineUnavailable)
        monkeypatch.undo()
        assert (await read(OTHER)).text == "the other"

    ask(tmp_path, engine, questions)
    assert [path.name for path in (tmp_path / "printed" / JOB).iterdir()] == [OTHER.slug]


def test_requests_that_wait_for_a_log_get_it_whatever_is_dropped(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archived_logs, "MAX_BYTES", 1)
    tasks = [TaskId("many", index) for index in range(24)]
    for task in tasks:
        write(tmp_path, task, 1, str(task))

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        for _ in range(3):
            found = await asyncio.gather(*map(read, tasks))
            assert [chunk.text for chunk in found] == [str(task) for task in tasks]
        assert (await read(OTHER)).text == "the other"
        assert [path.name for path in (tmp_path / "printed" / JOB).iterdir()] == [OTHER.slug]

    ask(tmp_path, engine, questions)


class TestSearch:
    def test_an_endless_pattern_holds_up_no_other_request(
        self, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, TASK, 1, "a" * 60 + "b\n")  # which takes years
        endless = LogQuery("(a+)+$", regex=True)

        async def questions(kept: ArchivedLogs) -> None:
            searching = asyncio.ensure_future(find(kept, engine, endless))
            await until(lambda: bool(helpers(os.getpid())), "a process that searches")
            assert (await read(kept, engine)).text == "the other"
            assert not searching.done()
            searching.cancel()
            monkeypatch.setattr(archived_logs, "SEARCH_S", 1.0)
            with pytest.raises(AnswerTimeout, match="not ended within 1 s"):
                await find(kept, engine, endless)
            await until(lambda: not helpers(os.getpid()), "the end of the processes that search")

        asked(tmp_path, questions)

    def test_slow_ones_hold_up_no_log_and_end(
        self, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine.goes_on = True

        async def questions(kept: ArchivedLogs) -> None:
            with monkeypatch.context() as quickly:
                quickly.setattr(archived_logs, "SEARCH_S", 0.5)
                many = [find(kept, engine, LogQuery("nowhere")) for _ in range(2 * archived_logs.PARALLEL)]
                slow = asyncio.gather(*many, return_exceptions=True)
                await asyncio.sleep(0)
                assert (await read(kept, LocalEngine({"local_home": str(tmp_path / "home")}))).text == "the other"
                assert [type(each) for each in await slow] == [AnswerTimeout] * len(many)
            engine.goes_on = False
            assert [hit["text"] for hit in (await find(kept, engine, LogQuery("the other")))["hits"]] == ["the other"]

        asked(tmp_path, questions)

    def test_what_was_printed_in_a_span_of_time_is_read_twice(self, tmp_path: Path, engine: Engine) -> None:
        lines = [f"line {number:04}\n" for number in range(1000)]
        write(tmp_path, TASK, 1, "".join(lines))
        directory = tmp_path / "home" / "jobs" / JOB / "tasks" / TASK.slug / "1"
        (directory / "times").write_text("".join(f"{100 + at} {at * 100} 0 {at * 10} 0\n" for at in range(100)))

        async def questions(kept: ArchivedLogs) -> None:
            found = await find(kept, engine, LogQuery("line", since=190.0, limit=5), TASK)
            assert [hit["text"] for hit in found["hits"]] == [f"line {number:04}" for number in range(900, 905)]
            assert engine.asked == 2

        asked(tmp_path, questions)

    def test_an_engine_that_does_not_answer(self, tmp_path: Path, engine: Engine) -> None:
        class Away(Engine):
            def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
                raise EngineUnavailable("nobody is there")

        async def questions(kept: ArchivedLogs) -> None:
            with pytest.raises(NotReady, match="nobody is there"):
                await find(kept, Away(tmp_path / "home"), LogQuery("x"))

        asked(tmp_path, questions)

    def test_one_whose_process_is_killed(self, tmp_path: Path, engine: Engine) -> None:
        engine.goes_on = True

        async def questions(kept: ArchivedLogs) -> None:
            searching = asyncio.ensure_future(find(kept, engine, LogQuery("x")))
            await until(lambda: bool(helpers(os.getpid())), "a process that searches")
            os.kill(helpers(os.getpid())[0], signal.SIGKILL)
            with pytest.raises(NotReady, match="it ended with status -9"):
                await searching

        asked(tmp_path, questions)


class TestEnd:
    def test_copies_and_searches_end_with_it(self, tmp_path: Path, engine: Engine) -> None:
        engine.goes_on = True

        async def questions(kept: ArchivedLogs) -> None:
            others = set(threading.enumerate())
            calls = [read(kept, engine), find(kept, engine, LogQuery("nowhere"))]
            under_way = [asyncio.ensure_future(call) for call in calls]
            await until(lambda: engine.asked == 2, "a copy and a search that have begun")
            names = ("archived-logs", "search")
            ours = [each for each in threading.enumerate() if each not in others and each.name.startswith(names)]
            assert len(ours) == 2
            kept.close()
            refused = await asyncio.gather(*under_way, return_exceptions=True)
            assert [type(each) for each in refused] == [NotReady, NotReady]
            await until(lambda: not any(each.is_alive() for each in ours), "the end of threads that copy and search")

        asked(tmp_path, questions)

    def test_a_server_that_is_told_to_end_does_so_while_it_searches(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        log = write_log(home, JOB, [next(begun(1)), *launched(1, 0, BEGAN, 1, 1), *ended(1)])
        log.write_text(log.read_text().replace('"engine":"yarn"', '"engine":"local"'))
        directory = home / "jobs" / JOB / "tasks" / TASK.slug / "1"
        directory.mkdir(parents=True)
        with (directory / "stdout").open("wb") as long:
            long.truncate(HOURS_LONG)
        command = [sys.executable, "-m", "howdah.history", "--engine", "local", "--set", f"local_home={home}"]
        server = subprocess.Popen([*command, "--state", str(tmp_path / "state")], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            base, _, token = server.stdout.readline().strip().partition("/#token=")
            target = f"{base}/api/v1/jobs/{JOB}/search?text=x&token={urllib.parse.quote(token)}"
            threading.Thread(target=fetched, args=(target,), daemon=True).start()
            asyncio.run(until(lambda: bool(helpers(server.pid)), "a process that searches"))
            left = helpers(server.pid)
            server.send_signal(signal.SIGTERM)
            assert server.wait(SOON_S) == 0
            gone = until(lambda: not [one for one in left if Path(f"/proc/{one}").exists()], "the end of the search")
            asyncio.run(gone)
        finally:
            server.kill()
            server.communicate()


def asked(tmp_path: Path, questions: Callable[[ArchivedLogs], Awaitable[None]]) -> None:
    async def main() -> None:
        kept = ArchivedLogs(tmp_path / "printed")
        try:
            await questions(kept)
        finally:
            kept.close()

    asyncio.run(asyncio.wait_for(main(), 2 * SOON_S))


async def read(kept: ArchivedLogs, engine: LocalEngine) -> LogChunk:
    return await kept.read(engine, JOB, OTHER, "stdout", 1, 0, 1000)


async def find(kept: ArchivedLogs, engine: Engine, wish: LogQuery, *tasks: TaskId) -> Mapping[str, Any]:
    return await kept.search(engine, JOB, wish, tasks or (TASK, OTHER), 0, "both")


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds, which is the coming of `what`."""
    last = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < last, f"not after {SOON_S:.0f} s: {what}"
        await asyncio.sleep(0.02)


def helpers(pid: int) -> list[int]:
    """Return the processes that search for the process `pid`."""
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            if any("archived_search" in word for word in child.cmdline()):
                found.append(child.pid)
    return found


def fetched(target: str) -> None:
    """Ask, and go on asking until the job is in the index; whatever comes of it."""
    for _ in range(1000):
        try:
            urllib.request.urlopen(target, timeout=SOON_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                return
            time.sleep(0.05)
        except OSError:
            return
