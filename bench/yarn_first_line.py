"""Measures how soon two tasks on YARN print their first line, beside Hadoop's distributed shell.

Each line carries its own time (`date +%s.%N`), so how logs are read takes no part in it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.distributed_shell import DistributedShell
from bench.event_times import milestones
from bench.report import QUIET_LIMIT_S, Report, alternate, ratios
from bench.temp_home import HOWDAH, Done, run, temp_home
from bench.two_lines import COMMAND, JOB
from howdah.client.clusters import engine_of
from howdah.client.recorded_events import recorded_events
from howdah.engines import Engine
from howdah.sandbox import Sandbox
from howdah.spec.events import Ended

ROUNDS, WARM_UPS = 7, 3
END_LIMIT_S = 30.0
FROM_CLIENT, FROM_SUBMIT, RETURN_S = 0.25, 0.20, 0.5


@dataclass(frozen=True)
class Run:
    """Seconds from the client's start and from the ResourceManager's submit time to the later of the first lines."""

    from_client: float
    from_submit: float
    end_to_return: float = 0.0
    steps: Mapping[str, float] = field(default_factory=dict)


def measure(report: Report) -> None:
    """Both on one cluster, in turns, after warm-ups that bring the files to every node."""
    with temp_home() as home, Sandbox() as sandbox:
        os.environ.update(sandbox.env())
        ours, theirs = measure_runs(home, sandbox, ROUNDS, WARM_UPS)
    _show_steps(report, ours)
    for name, limit in (("from_client", FROM_CLIENT), ("from_submit", FROM_SUBMIT)):
        mine, other = ([getattr(one, name) for one in side] for side in (ours, theirs))
        what = {"from_client": "client start", "from_submit": "RM submit"}[name]
        report.figure(f"{what} -> first line of both: howdah", mine)
        report.figure(f"{what} -> first line of both: distributed shell", other)
        ratio = report.figure(f"{what} -> first line of both: ratio", ratios(mine, other), "")
        report.target(f"{what} -> first line of both, of distributed shell's", ratio, limit)
    returned = report.figure("last task's end -> client returns", [one.end_to_return for one in ours])
    report.target("last task's end -> client returns", returned, RETURN_S, " s")


def measure_runs(
    home: Path, sandbox: Sandbox, rounds: int, warm_ups: int, quiet_limit_s: float = QUIET_LIMIT_S / 4
) -> tuple[list[Run], list[Run]]:
    """Return howdah's runs and those of the distributed shell, in turns, on a sandbox that this process uses."""
    (home / "job.yaml").write_text(JOB)
    rival = DistributedShell.of(sandbox, home)
    subjects = {"howdah": lambda: _ours(home, sandbox.run_dir), "shell": lambda: _theirs(rival)}
    runs = alternate(subjects, rounds, warm_ups, quiet_limit_s)
    return runs["howdah"], runs["shell"]


def _ours(home: Path, sandbox: Path) -> Run:
    done = run([HOWDAH, "run", "--on", "yarn", str(home / "job.yaml")])
    id_ = done.find(r"application_\d+_\d+")
    engine = engine_of(id_)
    lines, report = _lines(engine, id_), engine.describe(id_)[0]
    events = list(recorded_events(report))
    ended = max(event.time for event in events if isinstance(event, Ended))
    steps = milestones(id_, sandbox / "log", events, done.started, report.submitted)
    return _run(done, lines, report.submitted, done.ended - ended, steps)


def _theirs(rival: DistributedShell) -> Run:
    id_, done = rival.run(COMMAND, 2)
    engine = engine_of(id_)
    return _run(done, _lines(engine, id_), engine.describe(id_)[0].submitted)


def _lines(engine: Engine, id_: str) -> list[float]:
    """The times that the application's containers printed, once it has ended for YARN, too."""
    deadline = time.monotonic() + END_LIMIT_S
    while not engine.describe(id_)[0].state.ended and time.monotonic() < deadline:
        time.sleep(0.1)
    logs = b"".join(data for heading, data in engine.logs(id_, None) if heading.endswith("stdout"))
    return [float(text) for text in re.findall(rb"^(\d+\.\d+)$", logs, re.MULTILINE)]


def _run(
    done: Done, lines: list[float], submitted: float, back: float = 0.0, steps: Mapping[str, float] | None = None
) -> Run:
    if len(lines) != 2:
        raise SystemExit(f"two lines were to come, not {lines}:\n{done.output}")
    return Run(max(lines) - done.started, max(lines) - submitted, back, steps or {})


def _show_steps(report: Report, ours: list[Run]) -> None:
    """Where the time goes: medians of moments, in seconds since the client's start."""
    print("  howdah, seconds since the client's start:")
    for name in ours[-1].steps:
        report.figure(f"  {name}", [one.steps[name] for one in ours if name in one.steps])
