"""A job of this machine as its directory shows it: the event log, and whether its master lives."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.data import uris
from howdah.engines.local.processes import alive
from howdah.spec import JobReport, Outcome, State
from howdah.spec.codec import decode
from howdah.spec.job import JobSpec
from howdah.spec.values import dataclass

if TYPE_CHECKING:
    from howdah.spec.view import JobView

_START_S = 10.0


@dataclass(frozen=True)
class JobDirectory:
    """`path` is `<home>/jobs/<id>`. The submitting process writes `master.pid`, the master `master.json`."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    def note_master(self, pid: int, start: int) -> None:
        """Remember which process the master is."""
        record = {"pid": pid, "start": start, "submitted": time.time()}
        (self.path / "master.pid").write_text(json.dumps(record), encoding="utf-8")

    def master_pid(self) -> int:
        """That of the process which looks after the master, else of the master itself; 0 when both are gone."""
        for record in (self._json("master.pid"), self._json("master.json")):
            pid = int(record.get("pid", 0))
            if alive(pid, int(record.get("start", 0))):
                return pid
        return 0

    def view(self) -> JobView:
        """As far as the event log goes."""
        from howdah.spec.events import read_lines  # a submission does without
        from howdah.spec.view import JobView, fold

        try:
            with (self.path / "events.jsonl").open(encoding="utf-8", errors="replace") as lines:
                return fold(read_lines(lines))
        except FileNotFoundError:
            return JobView()

    def report(self) -> JobReport:
        """A job whose master is gone without saying how it ended has failed."""
        # In this order: a master that ends between the two questions has written its last event before.
        pid = self.master_pid()
        view = self.view()
        record, staged = self._json("master.pid"), self._json("job.json")
        spec = decode(JobSpec, staged.get("job", {"roles": {}}))
        state, diagnostics, finished = view.state, view.outcome.diagnostics if view.outcome else "", view.finished
        submitted = float(record.get("submitted", 0.0)) or self._made()
        if not state.ended and not pid and (record or time.time() - submitted > _START_S):
            state, diagnostics, finished = State.FAILED, self._death(record), self._last_change()
        return JobReport(
            id=self.id,
            name=spec.name,
            state=state,
            engine="local",
            user=staged.get("user", ""),
            queue=spec.queue,
            submitted=submitted,
            started=view.running,
            finished=finished,
            progress=view.progress,
            diagnostics=diagnostics,
            master=str(self._json("master.json").get("url", "")) if pid else "",
            tracking_url="",
            directory=uris.of_local(self.path),
        )

    def finish(self, outcome: Outcome) -> None:
        """Write the last event in place of a master that was killed."""
        from howdah.spec.events import JobFinished, to_line

        with (self.path / "events.jsonl").open("a", encoding="utf-8") as log:
            # The killed writer may have left half a line.
            log.write("\n" + to_line(JobFinished(time.time(), outcome)))

    def attempts(self) -> Iterator[tuple[str, int, Path]]:
        """(role-index, attempt, directory) of each attempt of each task, in order."""
        for task in sorted((self.path / "tasks").glob("*"), key=_natural):
            for attempt in sorted(task.iterdir(), key=_natural):
                yield task.name, int(attempt.name), attempt

    def _death(self, record: dict[str, Any]) -> str:
        if not record:
            return "the master was never started"
        if (self.path / "events.jsonl").exists():
            return f"the master was killed (pid {record.get('pid')}); nothing else is known"
        lines = self._text("master.log").strip().splitlines()
        return f"the master ended before it began: {lines[-1] if lines else 'it said nothing'}"

    def _made(self) -> float:
        return self.path.stat().st_ctime

    def _last_change(self) -> float:
        names = ("events.jsonl", "master.log", "master.pid")
        return max((one.stat().st_mtime for name in names if (one := self.path / name).exists()), default=self._made())

    def _json(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self._text(name) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


def _natural(path: Path) -> tuple[str, int]:
    role, _, number = path.name.rpartition("-")
    return role, int(number) if number.isdigit() else 0


def write_secret(path: Path, content: bytes) -> None:
    """A file that only its owner may read, from its first byte on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
