"""Tests snapshots and checkpoints of a real executor and its helpers, with a master that the test plays."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conductor import LIMIT_S, Conductor

from howdah.spec import uris
from howdah.wire.messages import Assignment, CheckpointSyncOrder, Goal, Phase, SnapshotOrder, SnapshotReport, Status

Start = Callable[..., Conductor]

WRITE = """
import os, time
os.makedirs("output", exist_ok=True)
open("output/model.bin", "w").write("whole")
os.utime("output/model.bin", (1, 1))
"""
WRITTEN = 'print("written", flush=True)\n'
HOLD = 'file = open("output/held.pt", "wb"); file.write(b"PK\\3\\4"); file.flush()\n'
WAIT = "time.sleep(600)"  # longer than any wait here


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Start]:
    started: list[Conductor] = []

    def start(source: str, **fields: object) -> Conductor:
        assignment = Assignment((sys.executable, "-c", source), **fields)  # type: ignore[arg-type]
        master = Conductor(tmp_path, assignment)
        started.append(master)
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        return master

    yield start
    for one in started:
        one.close()


def order(directory: Path, number: int = 1, **fields: object) -> SnapshotOrder:
    uri = uris.of_local(directory / "grows" / str(number))
    return SnapshotOrder(
        number=number, source="output", uri=uri, final=uris.of_local(directory / str(number)), **fields
    )  # type: ignore[arg-type]


def report(master: Conductor, number: int = 1) -> SnapshotReport:
    """The report of a snapshot that is done with."""

    def done(status: Status) -> list[SnapshotReport]:
        return [one for one in status.snapshots if one.number == number and one.done]

    return done(master.until(done))[0]


def written(master: Conductor) -> None:
    deadline = time.monotonic() + LIMIT_S
    while b"written" not in master.output():
        assert time.monotonic() < deadline, master.log()
        time.sleep(0.02)


def test_a_copy_is_made_beside_the_program(conduct: Start, tmp_path: Path) -> None:
    master = conduct(WRITE + 'import os; os.chmod("output/model.bin", 0o600)\n' + WRITTEN + WAIT)
    written(master)
    master.save(order(tmp_path))
    told = report(master)
    assert (told.problem, told.files, told.bytes, told.total) == ("", 1, 5, 1)
    assert (tmp_path / "grows/1/model.bin").read_text() == "whole"
    assert (tmp_path / "grows/1/model.bin").stat().st_mode & 0o777 == 0o600
    assert set(json.loads((tmp_path / "grows/1/_SAVED").read_text())["files"]) == {"model.bin"}
    master.save()
    master.until(lambda status: status.phase is Phase.RUNNING and not status.snapshots)
    assert master.leave() == 0


def test_a_single_file(conduct: Start, tmp_path: Path) -> None:
    master = conduct(WRITE + "open('output/other.bin', 'w').write('other')\n" + WRITTEN + WAIT)
    written(master)
    master.save(replace(order(tmp_path), source="output/model.bin"), replace(order(tmp_path, 2), source="output/none"))
    assert (report(master).files, report(master, 2).files, report(master, 2).problem) == (1, 0, "")
    assert [path.name for path in (tmp_path / "grows/1").iterdir() if path.suffix] == ["model.bin"]
    assert master.leave() == 0


def test_heartbeats_go_on_while_a_copy_waits_and_an_unwanted_copy_is_given_up(conduct: Start, tmp_path: Path) -> None:
    master = conduct('import os, time; os.makedirs("output", exist_ok=True)\n' + HOLD + WRITTEN + WAIT)
    written(master)
    master.save(order(tmp_path))
    master.until(lambda status: any(not one.done for one in status.snapshots))
    beats = len(master.statuses)
    master.until(lambda _: len(master.statuses) > beats + 2)
    master.save()
    master.until(lambda status: len(master.statuses) > beats + 2 and not status.snapshots)
    assert not (tmp_path / "grows/1/held.pt").exists()
    assert master.leave() == 0


def test_a_copy_that_takes_too_long_says_so_and_the_program_goes_on(conduct: Start, tmp_path: Path) -> None:
    master = conduct(WRITE + HOLD + WRITTEN + WAIT)
    written(master)
    master.save(order(tmp_path, limit_s=1.5))
    assert report(master).problem.startswith("it took longer than 2 s")
    assert master.statuses[-1].phase is Phase.RUNNING
    assert master.leave() == 0


def test_a_copy_outlives_its_program_which_leaves_no_stray(conduct: Start, tmp_path: Path) -> None:
    fresh = 'file = open("output/fresh.bin", "w"); file.write("x"); file.flush()\n'  # it is waited for while it is open
    master = conduct(WRITE + fresh + WRITTEN + 'while not os.path.exists("end"): time.sleep(0.02)')
    written(master)
    master.save(order(tmp_path))
    master.until(lambda status: any(not one.done for one in status.snapshots))
    (master.work / "end").touch()
    told = report(master)
    assert (told.problem, told.total) == ("", 2)
    assert "left" not in master.log()
    assert master.phase(Phase.ENDED).exit is not None
    assert master.leave() == 0


def test_no_directory_is_no_problem_and_a_place_that_cannot_be_written_is(conduct: Start, tmp_path: Path) -> None:
    master = conduct("import time; " + WAIT)
    master.phase(Phase.RUNNING)
    master.save(order(tmp_path))
    assert report(master) == SnapshotReport(number=1, done=True)
    (master.work / "output").mkdir()
    (master.work / "output/m.bin").write_text("x")
    (tmp_path / "grows").write_text("a file")
    master.save(order(tmp_path, 2))
    assert "grows" in report(master, 2).problem
    assert master.leave() == 0


def test_a_helper_that_is_killed_is_told(conduct: Start, tmp_path: Path) -> None:
    master = conduct(WRITE + HOLD + WRITTEN + WAIT)
    written(master)
    master.save(order(tmp_path))
    assert master.executor is not None
    children = Path(f"/proc/{master.executor.pid}/task/{master.executor.pid}/children")
    deadline = time.monotonic() + LIMIT_S
    helpers: list[int] = []
    while not helpers:
        assert time.monotonic() < deadline, f"no helper was started: {master.log()}"
        helpers = [pid for pid in map(int, children.read_text().split()) if b"howdah.outputs.snapshot" in command(pid)]
    os.kill(helpers[0], signal.SIGKILL)
    assert report(master).problem == "howdah.outputs.snapshot ended with signal 9"
    assert master.statuses[-1].phase is Phase.RUNNING
    assert master.leave() == 0


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_program_asks_by_a_line(conduct: Start) -> None:
    ask = 'import sys, time\nprint("reporter save", file=sys.stderr, flush=True)\nprint("howdah save", flush=True)\n'
    master = conduct(ask + WAIT)
    master.until(lambda status: status.requested_snapshots == 2)
    assert master.leave() == 0


STEP = """
import os, sys, zipfile
there = os.environ["HOWDAH_CHECKPOINT_DIR"]
print("resume", os.path.relpath(os.environ.get("HOWDAH_RESUME_FROM", "none"), there), flush=True)
with zipfile.ZipFile(os.path.join(there, "epoch-2.pt"), "w") as file:
    file.writestr("data", "2")
sys.exit(int(os.environ["CODE"]))
"""


def shared(directory: Path) -> Path:
    """A directory of checkpoints with one in it."""
    there = directory / "shared"
    there.mkdir()
    with zipfile.ZipFile(there / "epoch-1.pt", "w") as file:
        file.writestr("data", "1")
    os.utime(there / "epoch-1.pt", (1, 1))
    return there


@pytest.mark.parametrize("code", ["0", "3"])
def test_checkpoints_are_fetched_before_the_program_and_stored_before_its_end_is_told(
    conduct: Start, tmp_path: Path, code: str
) -> None:
    there = shared(tmp_path)
    uri = uris.of_local(there)
    master = Conductor(
        tmp_path,
        Assignment(
            (sys.executable, "-c", STEP), {"CODE": code}, checkpoint_sync=CheckpointSyncOrder(path="ck", uri=uri)
        ),
    )
    try:
        ended = master.run(HOWDAH_CHECKPOINT_DIR=uri, HOWDAH_RESUME_FROM=f"{uri}/epoch-1.pt")
        assert ended.exit is not None
        assert ended.exit.code == int(code)
        assert master.output() == b"resume epoch-1.pt\n"
        assert {path.name for path in there.iterdir()} == {"epoch-1.pt", "epoch-2.pt"}
        assert {path.name for path in (master.work / "ck").glob("*.pt")} == {"epoch-1.pt", "epoch-2.pt"}
        assert master.leave() == 0
    finally:
        master.close()


@pytest.mark.parametrize(
    ("valid", "resume", "told"),
    [
        ("all", "", "gone is left out: it leads to nothing, which is not there"),
        ("", "/epoch-1.pt", "epoch-2.pt in {uri} is replaced; what was there before the job is kept in {kept}"),
    ],
)
def test_users_are_told_what_cannot_be_fetched_and_where_what_was_there_is_kept(
    tmp_path: Path, valid: str, resume: str, told: str
) -> None:
    there = shared(tmp_path)
    uri = uris.of_local(there)
    (there / "gone").symlink_to("nothing")
    (there / "epoch-2.pt").write_text("of another job")
    os.utime(there / "epoch-2.pt", (2, 2))
    order_ = CheckpointSyncOrder(path="ck", uri=uri, valid=valid)
    master = Conductor(tmp_path, Assignment((sys.executable, "-c", STEP), {"CODE": "0"}, checkpoint_sync=order_))
    try:
        ended = master.run(HOWDAH_CHECKPOINT_DIR=uri, HOWDAH_RESUME_FROM=f"{uri}{resume}")
        assert [each.partition(" kept in ")[0] for each in ended.warnings] == [
            told.format(uri=uri, kept="").partition(" kept in ")[0]
        ]
        assert master.leave() == 0
    finally:
        master.close()


def test_what_a_stopped_program_leaves_is_stored(tmp_path: Path) -> None:
    there = shared(tmp_path)
    uri = uris.of_local(there)
    source = STEP.rpartition("sys.exit")[0] + "print('written', flush=True); import time; " + WAIT
    master = Conductor(
        tmp_path, Assignment((sys.executable, "-c", source), checkpoint_sync=CheckpointSyncOrder(path="ck", uri=uri))
    )
    try:
        master.world = {"HOWDAH_CHECKPOINT_DIR": uri}
        master.start()
        master.phase(Phase.JOINED)
        master.set_orders(Goal.RUN)
        written(master)
        master.set_orders(Goal.STOP, stop_s=1.0)
        ended = master.phase(Phase.ENDED)
        assert ended.exit is not None
        assert ended.exit.cause == "stopped"
        assert (there / "epoch-2.pt").exists()
        assert master.leave() == 0
    finally:
        master.close()


def test_checkpoints_that_cannot_be_fetched_end_the_task(tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("a file")
    uri = uris.of_local(tmp_path / "shared/below")
    order_ = CheckpointSyncOrder(path="ck/../../out", uri=uri)
    master = Conductor(tmp_path, Assignment((sys.executable, "-c", STEP), checkpoint_sync=order_))
    try:
        (tmp_path / "out").write_text("in the way")
        ended = master.run(HOWDAH_CHECKPOINT_DIR=uri)
        assert ended.exit is not None
        assert (ended.exit.cause, "out" in ended.exit.detail) == ("localise", True)
        assert master.leave() == 0
    finally:
        master.close()


def test_who_does_not_write_stores_nothing(tmp_path: Path) -> None:
    there = shared(tmp_path)
    uri = uris.of_local(there)
    mirror = CheckpointSyncOrder(path="ck", uri=uri, writes=False)
    master = Conductor(tmp_path, Assignment((sys.executable, "-c", STEP), {"CODE": "0"}, checkpoint_sync=mirror))
    try:
        master.run(HOWDAH_CHECKPOINT_DIR=uri)
        assert {path.name for path in there.iterdir()} == {"epoch-1.pt"}
        assert master.leave() == 0
    finally:
        master.close()


def test_nothing_behind_a_link_out_of_the_working_directory_is_copied(conduct: Start, tmp_path: Path) -> None:
    link = f"import os\nos.symlink({os.fspath(tmp_path)!r}, 'output')\n"
    master = conduct(link + WRITTEN + WAIT)
    written(master)
    master.save(order(tmp_path))
    assert report(master).problem.startswith("output is a link out of the working directory, to ")
    assert not (tmp_path / "grows").exists()
