"""Tests detecting programs that hang: signs of progress, suspects by their stacks, and the master's decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from howdah.executor.process.progress_signs import ProgressDetector
from howdah.master.decisions.actions import CollectStacks, RecordEvent, ReleaseContainer
from howdah.master.health.stack_suspects import Suspect, find_suspect, main_frames
from howdah.spec import JobSpec, Role, State, TaskId, Timeouts
from howdah.spec.events import Ended, GangRestarted, StacksTaken, Stalled
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage
from howdah.testing import OK, Gang
from howdah.wire.messages import Phase

W0, W1, W2, W3 = (TaskId("worker", index) for index in range(4))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestSigns:
    def look(self, signs: ProgressDetector, clock: Clock, printed: int = 0, spoke: float = 0.0, **usage: Any) -> float:
        clock.now += 10
        signs.update(Usage(**usage), printed, spoke)
        return signs.idle_s

    def test_silence_grows_until_something_is_printed(self) -> None:
        clock = Clock()
        signs = ProgressDetector(clock)
        self.look(signs, clock)
        assert [self.look(signs, clock) for _ in range(2)] == [10, 20]
        assert self.look(signs, clock, printed=1) == 0

    @pytest.mark.parametrize(
        "busy", [{"cpu": 0.5}, {"gpus": (Gpu("0", use=0.9),)}, {"streamed_bytes": 5}, {"progress": 0.1}]
    )
    def test_what_counts_for_one_that_never_spoke(self, busy: dict[str, Any]) -> None:
        clock = Clock()
        signs = ProgressDetector(clock)
        self.look(signs, clock)
        assert self.look(signs, clock, **busy) == 0

    def test_watchers_threads_are_no_sign(self) -> None:
        clock = Clock()
        signs = ProgressDetector(clock)
        self.look(signs, clock)
        assert self.look(signs, clock, cpu=0.02) == 10

    def test_a_library_that_reports_by_itself_may_evaluate_in_silence(self) -> None:
        clock = Clock()
        signs = ProgressDetector(clock)
        self.look(signs, clock)
        for share, reported_at in ((0.1, 1.0), (0.2, 2.0)):
            signs.update(Usage(progress=share), 0, reported_at, is_automatic=True)
        assert self.look(signs, clock, spoke=2.0, progress=0.2, cpu=0.9) == 0

    def test_who_speaks_is_taken_at_its_word(self) -> None:
        """It spins in a collective: its CPU is no sign any more."""
        clock = Clock()
        signs = ProgressDetector(clock)
        self.look(signs, clock)
        assert self.look(signs, clock, spoke=1.0, cpu=1.0) == 0
        assert self.look(signs, clock, spoke=1.0, cpu=1.0) == 10
        assert self.look(signs, clock, spoke=2.0, cpu=1.0) == 0


def stack(*frames: str, thread: str = '"MainThread"') -> str:
    lines = "\n".join(f"    {frame}" for frame in frames)
    return f"Process 7: python3 train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread 7 (idle): {thread}\n{lines}\n"


WAITS = stack("wait (threading.py:320)", "all_reduce (torch/distributed/distributed_c10d.py:2501)", "<module> (t.py:9)")
LOCKED = stack("take (train.py:5)", "<module> (train.py:11)")


class TestSuspects:
    def test_the_one_that_is_in_no_collective(self) -> None:
        found = find_suspect({W0: WAITS, W1: LOCKED, W2: WAITS}, {})
        assert found.tasks == (W1,)
        assert found.reason == (
            "it is in take (train.py:5), while 2 wait in all_reduce (torch/distributed/distributed_c10d.py:2501)"
        )

    def test_the_one_unlike_most(self) -> None:
        same = stack("read (data.py:3)", "<module> (t.py:1)")
        found = find_suspect({W0: same, W1: LOCKED, W2: same.replace("data.py:3", "data.py:4")}, {})
        assert found == Suspect((W1,), "it is in take (train.py:5), while 2 are in read (data.py:3)")

    def test_the_one_that_fell_silent_first(self) -> None:
        alike = {W0: WAITS, W1: WAITS}
        assert find_suspect(alike, {W0: 100.0, W1: 130.0}) == Suspect((W1,), "it fell silent 30 s before any other")
        assert find_suspect(alike, {W0: 100.0, W1: 102.0}) == Suspect()

    def test_stacks_could_not_be_taken(self) -> None:
        refused = "Process 7: the node does not permit reading\n"
        assert find_suspect({W0: refused, W1: ""}, {W0: 9.0, W1: 90.0}).tasks == (W1,)
        assert find_suspect({}, {}) == Suspect()

    def test_the_main_thread_of_the_process_with_most_to_tell(self) -> None:
        text = stack("poll (loader.py:1)") + stack("x (c.py:1)", thread='"helper"') + LOCKED.replace("7", "8")
        assert [str(frame) for frame in main_frames(text)] == ["take (train.py:5)", "<module> (train.py:11)"]
        native = stack("clock_nanosleep (libc.so.6)", "step (train.py:9)")
        assert [str(frame) for frame in main_frames(native)] == ["clock_nanosleep (libc.so.6)", "step (train.py:9)"]


def gang(on_stall: str = "", retries: int = 1, **role: object) -> Gang:
    worker = replace(Role("train", replicas=2), on_stall=on_stall, **role)  # type: ignore[arg-type]
    job = JobSpec(roles={"worker": worker}, retries=retries, timeouts=Timeouts(stall_s=60))
    made = Gang(job)
    made.form()
    return made


def quiet(gang: Gang, w0: float, w1: float) -> None:
    for task, seconds in (("worker:0", w0), ("worker:1", w1)):
        gang.say(task, Phase.RUNNING, ports={"main": 4000}, program_pid=7, idle_s=seconds)
    gang.wait(0.5)


def taken(gang: Gang, *suspects: TaskId) -> None:
    gang.feed(StacksTaken(gang.now, "", "file:///stacks", suspects, "it is in take (train.py:5)"))


class TestMaster:
    def test_it_is_told_once_and_stacks_of_all_are_taken(self) -> None:
        job = gang()
        quiet(job, 59, 30)
        assert not job.recorded(Stalled)
        quiet(job, 61, 31)
        assert job.actions_of(CollectStacks) == [CollectStacks((W0, W1), (W0,))]
        taken(job, W1)
        quiet(job, 90, 62)
        assert [event.tasks for event in job.recorded(Stalled)] == [(W0,), (W1,)]
        taken(job)
        quiet(job, 0, 100)
        quiet(job, 70, 130)  # the first went on for a while
        assert len(job.recorded(Stalled)) == 3
        assert job.state.open

    @pytest.mark.parametrize("policy", ["ignore", "report"])
    def test_nothing_follows(self, policy: str) -> None:
        job = gang(policy)
        quiet(job, 100, 100)
        assert bool(job.recorded(Stalled)) is (policy == "report")
        taken(job, W1)
        assert not job.recorded(GangRestarted)

    @pytest.mark.parametrize("policy", ["restart", "fail"])
    def test_nothing_follows_once_the_chief_has_ended_well(self, policy: str) -> None:
        """The others may wait for it for good."""
        roles = {"chief": Role("c"), "worker": Role("train", replicas=2, on_stall=policy)}
        job = Gang(JobSpec(roles, success="chief", retries=1, timeouts=Timeouts(stall_s=60, grace_s=600)))
        job.form()
        job.end("chief:0")
        quiet(job, 100, 90)
        taken(job, W1)
        assert job.state.open
        assert not job.recorded(GangRestarted)

    def test_a_restart_is_that_of_the_suspect(self) -> None:
        job = gang("restart")
        quiet(job, 100, 90)
        taken(job, W1)
        (end,) = job.recorded(Ended)
        assert (end.task, end.exit.cause) == (W1, "stalled")
        assert (
            end.exit.detail == "no sign of progress for 100 s (timeouts.stall), with 1 more; it is in take (train.py:5)"
        )
        (again,) = job.recorded(GangRestarted)
        assert again.reason.endswith("(retry 1 of 1)")
        assert not job.actions_of(ReleaseContainer)  # in place
        for task in ("worker:0", "worker:1"):
            job.join(task)
            job.run(task)
            job.end(task)
        assert job.outcome is not None
        assert job.outcome.state is State.SUCCEEDED

    def test_the_suspect_may_have_gone_on_a_little_longer(self) -> None:
        job = gang("restart")
        quiet(job, 61, 59)
        taken(job, W1)
        (end,) = job.recorded(Ended)
        assert (end.task, end.exit.detail.partition(",")[2]) == (W1, " with 1 more; it is in take (train.py:5)")

    def test_no_retry_is_left(self) -> None:
        job = gang("restart", retries=0)
        quiet(job, 100, 90)
        taken(job, W1)
        assert job.state.outcome is not None
        assert job.state.outcome.exit is not None
        assert (job.state.outcome.state, job.state.outcome.exit.cause) == (State.FAILED, "stalled")

    def test_the_job_fails_and_names_it(self) -> None:
        job = gang("fail", retries=5)
        quiet(job, 100, 90)
        taken(job, W1)
        assert job.state.outcome is not None
        assert job.state.outcome.diagnostics.startswith("worker:1 on node2: no sign of progress for 100 s")

    def test_a_failure_that_does_not_matter_ends_the_program_all_the_same(self) -> None:
        job = gang("restart", on_failure="ignore")
        quiet(job, 100, 0)
        taken(job, W0)
        assert job.state.tasks[W0].stopped
        job.end("worker:1", OK)
        assert job.state.outcome is not None
        assert job.state.outcome.state is State.SUCCEEDED

    def test_stacks_never_arrive(self) -> None:
        job = gang("fail")
        quiet(job, 100, 0)
        for second in range(0, 93, 7):
            job.now += 7
            quiet(job, 100 + second, 0)
        assert job.recorded(StacksTaken)[0].problem == "they did not arrive within 90 s"
        assert not job.state.open

    def test_who_looks_on_his_own_account_decides_nothing(self) -> None:
        job = gang("fail")
        quiet(job, 100, 0)
        job.feed(StacksTaken(job.now, "alice", "file:///stacks"))
        assert job.state.open
        taken(job, W0)
        assert not job.state.open

    def test_it_goes_on_meanwhile_in_another_epoch(self) -> None:
        job = gang("fail")
        quiet(job, 100, 0)
        job.end("worker:1", replace(OK, code=1))  # the gang starts again
        for task in ("worker:0", "worker:1"):
            job.join(task)
        for task in ("worker:0", "worker:1"):
            job.run(task)
        taken(job, W0)
        assert job.state.open

    @pytest.mark.parametrize("lost", [0, 1, 2])
    def test_a_master_that_takes_over_knows(self, lost: int) -> None:
        job = gang("restart")
        quiet(job, 100, 90)
        taken(job, W1)
        job.take_over(lost)
        assert [event.tasks for event in job.recorded(Stalled)] == [(W0, W1)]
        assert job.state.epoch == 2

    def test_people_see_it(self) -> None:
        job = gang("report")
        quiet(job, 100, 90)
        taken(job, W1)
        view = fold(action.event for action in job.actions_of(RecordEvent))
        assert view.stacks == ["file:///stacks"]
        assert any(note.startswith("suspected: worker:1 (it is in take") for note in view.notes)
