"""What tasks of ended jobs printed, as the history server brings it: late nodes, slow ones, those that have nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from howdah.engines.local.engine import LocalEngine
from howdah.errors import EngineUnavailable
from howdah.history import printed
from howdah.history.printed import Printed
from howdah.spec import TaskId
from howdah.web.source import Refused
from howdah.wire.messages import LogChunk

JOB, TASK, OTHER = "local-1", TaskId("worker", 0), TaskId("worker", 1)
SOON_S = 60.0


class Engine(LocalEngine):
    """This machine's, with nodes that take their time: who asks for a log waits for `open`."""

    def __init__(self, home: Path) -> None:
        super().__init__({"local_home": str(home)})
        self.is_settled, self.asked, self.open = True, 0, threading.Event()
        self.open.set()

    def settled(self, job_id: str) -> bool:
        return self.is_settled

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        self.asked += 1
        if task == TASK:
            assert self.open.wait(SOON_S)
        yield from super().logs(job_id, task, stream)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = Engine(tmp_path / "home")
    (tmp_path / "home" / "jobs" / JOB).mkdir(parents=True)
    write(tmp_path, OTHER, 1, "the other")
    return made


def write(base: Path, task: TaskId, attempt: int, text: str) -> None:
    folder = base / "home" / "jobs" / JOB / "tasks" / task.slug / str(attempt)
    folder.mkdir(parents=True)
    (folder / "stdout").write_text(text)


def ask(
    tmp_path: Path, engine: Engine, questions: Callable[[Callable[..., Awaitable[LogChunk]]], Awaitable[None]]
) -> None:
    async def main() -> None:
        kept = Printed(tmp_path / "printed")
        await questions(lambda task, attempt=1: kept.read(engine, JOB, task, "stdout", attempt, 0, 1000))

    asyncio.run(asyncio.wait_for(main(), 2 * SOON_S))


def test_a_node_that_is_late_is_waited_for_and_one_that_is_done_is_not_asked_again(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printed, "AGAIN_S", 0.0)
    monkeypatch.setattr(printed, "SHARE", 0)
    write(tmp_path, TASK, 1, "first")
    engine.is_settled = False

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        assert (await read(TASK)).text == "first"
        with pytest.raises(Refused) as refused:
            await read(TASK, 2)
        assert refused.value.status == 503
        write(tmp_path, TASK, 2, "second")
        engine.is_settled = True
        found = None
        while found is None:  # what there was is shown while it is looked for again
            with contextlib.suppress(Refused):
                found = await read(TASK, 2)
            await asyncio.sleep(0.01)
        assert found.text == "second"
        asked = engine.asked
        assert [(await read(TASK, attempt)).text for attempt in (1, 2)] == ["first", "second"]
        with pytest.raises(Refused) as refused:
            await read(TASK, 3)
        assert (refused.value.status, engine.asked) == (404, asked)

    ask(tmp_path, engine, questions)


def test_one_that_takes_long_holds_up_nobody(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, TASK, 1, "at last")
    engine.open.clear()

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        with monkeypatch.context() as quickly:
            quickly.setattr(printed, "WAIT_S", 0.01)
            for _ in range(2 * printed.AT_ONCE):
                with pytest.raises(Refused) as refused:
                    await read(TASK)
                assert refused.value.status == 504
        assert (await read(OTHER)).text == "the other"
        engine.open.set()
        assert (await read(TASK)).text == "at last"
        assert engine.asked == 2  # the same copy was gone on with

    ask(tmp_path, engine, questions)


def test_one_that_takes_too_long_is_given_up(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed, "BRING_S", -1.0)

    async def questions(read: Callable[..., Awaitable[LogChunk]]) -> None:
        with pytest.raises(Refused, match="could not be brought here") as refused:
            await read(OTHER)
        assert refused.value.status == 503
        assert isinstance(refused.value.__cause__, EngineUnavailable)
        monkeypatch.undo()
        assert (await read(OTHER)).text == "the other"

    ask(tmp_path, engine, questions)
    assert [path.name for path in (tmp_path / "printed" / JOB).iterdir()] == [OTHER.slug]
