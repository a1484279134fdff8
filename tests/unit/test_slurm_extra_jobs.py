"""Tests the extra jobs of a job on Slurm: what is submitted, waited for and given up; and the script that keeps a
place."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm, wait_for

from howdah.engines import NO_PREFERENCES
from howdah.engines.event_queue import EventQueue
from howdah.engines.slurm.commands import SlurmCommands
from howdah.engines.slurm.extra_jobs import ExtraJobs
from howdah.engines.slurm.shapes import ContainerShape, SlurmPlace
from howdah.errors import EngineUnavailable
from howdah.spec.events import Noted

SHAPE = ContainerShape(256, 1)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def queue() -> EventQueue:
    return EventQueue()


@pytest.fixture
def extra(tmp_path: Path, slurm: FakeSlurm, queue: EventQueue) -> ExtraJobs:
    return ExtraJobs(SlurmCommands(), "7", tmp_path, ["--partition=main"], queue)


def adjust(extra: ExtraJobs, count: int, shape: ContainerShape = SHAPE) -> None:
    asyncio.run(extra.adjust("worker", count, shape, "", NO_PREFERENCES))


def take_started(extra: ExtraJobs) -> list[SlurmPlace]:
    return asyncio.run(extra.take_started())


def test_an_array_that_is_too_large_for_slurm_becomes_several(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 7)
    arrays = [[word for word in call.split() if word.startswith("--array")] for call in slurm.calls("sbatch")]
    assert arrays == [["--array=0-2"], ["--array=0-2"], []]
    assert list(extra.waiting) == ["101_0", "101_1", "101_2", "102_0", "102_1", "102_2", "103"]


def test_only_what_is_too_much_loses_its_turn(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 5)
    adjust(extra, 4)
    assert slurm.calls("scancel") == ["--quiet 102_1"]
    adjust(extra, 4)
    assert (len(slurm.calls("sbatch")), len(slurm.calls("scancel"))) == (2, 1)


def test_another_shape_is_waited_for_anew(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 2)
    adjust(extra, 2, ContainerShape(512, 1))
    assert slurm.calls("scancel") == ["--quiet 101_0 101_1"]
    assert list(extra.waiting) == ["102_0", "102_1"]


def test_what_starts_while_it_is_given_up_is_given_up(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 2)
    slurm.say_jobs("101_0 PENDING", "101_1 RUNNING n4")
    adjust(extra, 1)
    assert slurm.calls("scancel") == ["--quiet 101_1"], "whatever its state"
    slurm.say("down", "")
    with pytest.raises(Exception, match="does not answer"):
        adjust(extra, 0)
    assert list(extra.waiting) == ["101_0"], "it is cancelled when Slurm answers"


def test_each_element_is_a_place_once_it_runs(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 3)
    slurm.say_jobs("101_0 PENDING", "101_1 RUNNING n4", "101_2 SUSPENDED n5")
    (place,) = take_started(extra)
    assert (place.number, place.node, place.extra_id, place.role) == ("602", "n4", "101_1", "worker")
    slurm.say_jobs("101_0 CANCELLED", "101_1 RUNNING n4", "101_2 RUNNING n5")
    assert [place.extra_id for place in take_started(extra)] == ["101_2"]
    assert not extra.waiting
    asked = len(slurm.calls("squeue"))
    assert take_started(extra) == []
    assert len(slurm.calls("squeue")) == asked, "nothing is waited for"


def test_an_extra_job_ends_with_the_job(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    end = datetime.fromtimestamp(time.time() + 3590).isoformat(timespec="seconds")
    slurm.say("job-7", f"JobId=7 TimeLimit=02:00:00 EndTime={end}\n")
    adjust(extra, 1)
    assert {"--time=60", "--signal=B:USR1@60"} < set(slurm.calls("sbatch")[0].split())
    slurm.say("job-7", "JobId=7 TimeLimit=UNLIMITED EndTime=Unknown\n")
    adjust(extra, 2)
    assert "--time=UNLIMITED" in slurm.calls("sbatch")[1].split()


def test_what_cannot_be_given_up_now_is_given_up_later(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    slurm.say("down", "")
    asyncio.run(extra.give_up("101_0"))
    (slurm.state / "down").unlink()
    asyncio.run(extra.give_up())
    asyncio.run(extra.give_up())
    assert slurm.calls("scancel") == ["--quiet 101_0", "--quiet 101_0"]


def test_what_slurm_has_taken_without_an_answer_is_given_up(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    slurm.say("late", "")
    with pytest.raises(EngineUnavailable, match="Socket timed out"):
        adjust(extra, 1)
    (slurm.state / "late").unlink()
    adjust(extra, 1)
    slurm.say_jobs("101 RUNNING n4", "102 RUNNING n5")
    slurm.say("down", "")
    with pytest.raises(EngineUnavailable):
        asyncio.run(extra.give_up_unknown(["101", "102"]))
    (slurm.state / "down").unlink()
    asyncio.run(extra.give_up_unknown([]))
    assert slurm.calls("scancel") == ["--quiet 101"]
    assert [place.number for place in take_started(extra)] == ["102"]


def test_why_a_place_does_not_come_is_told(extra: ExtraJobs, slurm: FakeSlurm, queue: EventQueue) -> None:
    adjust(extra, 2)
    slurm.say_jobs("101_0 NODE_FAIL n4", "101_1 NODE_FAIL n4")
    assert take_started(extra) == []
    assert not extra.waiting, "others are submitted"
    (note,) = asyncio.run(queue.next_events(lambda: asyncio.sleep(0, 1.0), 0.0))
    assert isinstance(note, Noted)
    assert note.text == "Slurm has ended the job that was to bring a container of worker: node_fail"


def test_a_master_that_takes_over_keeps_what_it_uses(extra: ExtraJobs, slurm: FakeSlurm) -> None:
    adjust(extra, 3)
    slurm.say_jobs("101_0 RUNNING n4", "101_1 RUNNING n5", "101_2 PENDING")
    asyncio.run(extra.give_up_all({"101_1"}))
    assert slurm.calls("scancel") == ["--quiet 101_0 101_2"] or slurm.calls("scancel") == ["--quiet 101_2 101_0"]


class TestKeeper:
    """The script runs here, without the variables of this process."""

    @pytest.fixture
    def run(self, extra: ExtraJobs, slurm: FakeSlurm) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
        adjust(extra, 1)
        (slurm.bin / "sleep").write_text(f"#!/bin/sh\n[ -e {slurm.state}/slow ] || exit 0; exec /bin/sleep 600\n")
        (slurm.bin / "sleep").chmod(0o700)
        script = (slurm.state / "script-101").read_text(encoding="utf-8")
        started: list[subprocess.Popen[bytes]] = []

        def start() -> subprocess.Popen[bytes]:
            command = ["/bin/bash", "-c", script]
            started.append(subprocess.Popen(command, env={"SLURM_JOB_ID": "101"}, start_new_session=True))
            return started[-1]

        yield start
        for keeper in started:  # Slurm ends what a job has left, such as a `sleep`
            with contextlib.suppress(ProcessLookupError):
                os.killpg(keeper.pid, signal.SIGKILL)

    def test_it_says_that_it_has_started_and_what_slurm_announces(
        self, extra: ExtraJobs, slurm: FakeSlurm, tmp_path: Path, run: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        slurm.say("slow", "")
        keeper = run()
        wait_for(tmp_path / "keepers" / "101.started")
        keeper.send_signal(signal.SIGUSR1)
        wait_for(tmp_path / "keepers" / "101.ending")
        assert (extra.take_signs("started"), extra.take_signs("ending")) == (["101"], ["101"])
        assert (extra.take_signs("started"), extra.take_signs("ending")) == ([], [])
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == 0
        assert slurm.calls("squeue") == [], "it asks Slurm only now and then"

    def test_it_ends_when_the_master_has_left(
        self, extra: ExtraJobs, slurm: FakeSlurm, run: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        slurm.say_jobs("7 RUNNING n1")
        keeper = run()
        extra.mark.touch()
        assert keeper.wait(60) == 0

    def test_it_ends_with_the_job_whose_master_left_no_sign(
        self, slurm: FakeSlurm, run: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        assert run().wait(60) == 0
        assert "--states=RUNNING,SUSPENDED,STOPPED" in slurm.calls("squeue")[0]
