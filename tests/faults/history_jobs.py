"""Writes job directories with event logs, for tests of the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from howdah.spec import Container, Exit, JobSpec, Outcome, Resources, Role, State, TaskId, event_lines
from howdah.spec.events import Ended, Event, JobFinished, JobStarted, Joined, Launched, Started, WorldFormed

OK = Exit("exit", 0)
BEGAN = 1_700_000_000.0


def job_id(number: int) -> str:
    """Return an application's id as a job's."""
    return f"application_1700000000000_{number:04d}"


def container(number: int, task: int, attempt: int = 1) -> str:
    """Return the container of the task of this number."""
    return f"container_1700000000000_{number:04d}_01_{task + 2 + 10 * (attempt - 1):06d}"


def begun(number: int, *, workers: int = 2, gpus: int = 1, at: float = 0.0, **job: object) -> Iterator[Event]:
    """Return the events of a job whose tasks all run, from 10 s after its start on."""
    start = at or BEGAN + 1000 * number
    role = Role("train", workers, Resources(gpus=gpus))
    spec = JobSpec({"worker": role}, **{"name": f"job-{number}", **job})  # type: ignore[arg-type]
    yield JobStarted(start, job_id(number), "yarn", f"user{number % 3}", spec)
    for index in range(workers):
        yield from launched(number, index, start, 1, 1)
    yield WorldFormed(start + 5, 1)
    for index in range(workers):
        yield Started(start + 10, TaskId("worker", index), 1, 1, 100 * number + index)


def launched(number: int, index: int, start: float, attempt: int, epoch: int) -> Iterator[Event]:
    """Return the events of one task's attempt up to its joining."""
    task, node = TaskId("worker", index), f"node{index}"
    yield Launched(start, task, attempt, Container(container(number, index, attempt), f"{node}:45454", "worker"))
    yield Joined(start + 4, task, attempt, epoch, node)


def ended(number: int, state: State = State.SUCCEEDED, said: str = "", after: float = 3600.0) -> Iterator[Event]:
    """Return the events in which both tasks end `after` seconds after the start, and the job with them."""
    start, good = BEGAN + 1000 * number, state is State.SUCCEEDED
    for index in range(2):
        exit = OK if good else Exit("memory", detail="too much")
        yield Ended(start + after, TaskId("worker", index), 1, 1, exit, f"node{index}")
    yield JobFinished(start + after, Outcome(state, said, None if good else TaskId("worker", 0), None))


def write(home: Path, id_: str, events: Iterable[Event], more: str = "") -> Path:
    """Write a job's log below `home`, with the text `more` appended as it is."""
    directory = home / "jobs" / id_
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / "events.jsonl").open("a", encoding="utf-8") as log:
        log.write("".join(map(event_lines.to_line, events)) + more)
    return directory / "events.jsonl"


def whole(home: Path, number: int, state: State = State.SUCCEEDED, said: str = "", **job: object) -> Path:
    """Return the events of a complete job."""
    return write(home, job_id(number), (*begun(number, **job), *ended(number, state, said)))  # type: ignore[arg-type]
