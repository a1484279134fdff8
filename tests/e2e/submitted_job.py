"""A job that a test has submitted to an engine by the Python API, and its events."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.client.submit import prepare
from howdah.engines import Engine
from howdah.spec import JobReport, JobSpec, Resources, Role, TaskId, uris
from howdah.spec.event_lines import read_log
from howdah.spec.events import Ended, Event, Launched

LIMIT_S = 240.0
"""A busy machine needs minutes for something that usually takes seconds; only a failing test waits so long."""
WAITING = """n=1; while [ -e {mark}-$HOWDAH_INDEX-$n ]; do n=$((n + 1)); done
echo $$ > {mark}-$HOWDAH_INDEX-$n; until [ -e {mark}-end ]; do sleep 0.1; done"""


def until(condition: Callable[[], Any], what: str, explain: Callable[[], str] = str) -> Any:
    """Wait until the condition is true, and return its value. Checking it takes at most a fifth of the time. `explain`
    returns more text for a failure."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        assert now < deadline, f"{what}: not within {LIMIT_S:.0f} s\n{explain()}"
        time.sleep(max(0.1, 4 * (now - began)))


class SubmittedJob:
    """A job of the role `worker` (`more` are others), whose programs wait for the file `<mark>-end` unless they run
    another line."""

    def __init__(
        self, engine: Engine, base: Path, line: str = "", role: dict[str, Any] | None = None, **job: Any
    ) -> None:
        self.engine, self.mark = engine, base / "mark"
        command = ("/bin/sh", "-c", line or WAITING.format(mark=self.mark))
        spec = Role(command, **{"resources": Resources(256), **(role or {})})
        roles = {"worker": spec, **job.pop("more", {})}
        prepared = prepare(JobSpec(roles, **job), base, {"engine": engine.name}, lambda _: None)
        self.id = engine.submit(prepared.plan, prepared.secrets)

    @property
    def report(self) -> JobReport:
        return self.engine.describe(self.id)[0]

    @property
    def events(self) -> list[Event]:
        log = Path(uris.path(self.report.directory), "events.jsonl")
        return list(read_log(log.read_text().splitlines())) if log.exists() else []

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def program(self, index: int = 0, start: int = 1) -> int:
        """Return the pid of a task's program once it was started as often as `start` says."""
        path = self.mark.with_name(f"{self.mark.name}-{index}-{start}")
        until(lambda: path.exists() and path.read_text().strip(), f"start {start} of worker:{index} of {self.id}")
        return int(path.read_text())

    def finish(self) -> None:
        self.mark.with_name(f"{self.mark.name}-end").touch()

    def ended(self) -> JobReport:
        until(lambda: self.report.state.ended, f"the end of {self.id}")
        return self.report

    def launched(self, index: int = 0) -> Launched:
        """Return the last launch of a task."""
        found: Launched = [each for each in self.of(Launched) if each.task == TaskId("worker", index)][-1]
        return found

    def causes(self) -> list[str]:
        return [each.exit.cause for each in self.of(Ended)]
