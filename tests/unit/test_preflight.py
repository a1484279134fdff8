"""Tests pre-flight: which checks a job needs, what they find on this machine, who is to blame, and what follows."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from howdah.config.job_file import loads
from howdah.errors import SpecError
from howdah.executor.preflight import local_checks
from howdah.executor.preflight.requests import LocalChecksRequest, PairExchangeRequest
from howdah.frameworks import find
from howdah.master.decisions.actions import (
    NoteNodeFailures,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    StatusReceived,
)
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.master.preflight.pair_tests import find_bad_containers, pair_rounds, ring_across_nodes
from howdah.master.state import GangState
from howdah.spec import Exit, JobSpec, Preflight, Role, StagedJob, State, TaskId, Timeouts
from howdah.spec.codec import encode
from howdah.spec.events import ContainerEnded, Ended, Noted, PreflightPassed, WorldFormed
from howdah.spec.fold import fold
from howdah.spec.preflight import checks_of_job
from howdah.spec.validation import find_mistakes
from howdah.testing import Gang
from howdah.wire.messages import Assignment, CheckOrder, CheckReport, Goal, PairOrder, Partner, Phase

W = [TaskId("worker", index) for index in range(6)]
DISK = Exit("preflight", detail="pre-flight: disk: 3 MiB free on /tmp, wanted 1.0 GiB")


class TestSpec:
    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("preflight: all", ("disk", "memory", "gpu", "matmul", "all-reduce")),
            ("preflight: disk", ("disk",)),
            ("preflight: [all-reduce, disk]", ("disk", "all-reduce")),
            ("preflight: {checks: [memory], disk: 10GiB, limit: 2min}", ("memory",)),
            ("preflight:", ()),
        ],
    )
    def test_short_and_long(self, text: str, names: tuple[str, ...]) -> None:
        job, _ = loads(f"roles: {{worker: {{command: train}}}}\n{text}\n", "job.yaml", {}, {})
        assert checks_of_job(job) == names

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("preflight: dsik", "preflight.checks.0: is 'dsik', must be one of disk, memory"),
            ("preflight: {checks: [disk], limit: 0s}", "preflight.limit: is 0 s, must be 1 s to 86400 s"),
            ("preflight: {check: [disk]}", "preflight.check: is not a key here, known are checks, disk, limit"),
            ("preflight: [all-reduce]\ngang: false", "preflight.checks.0: is 'all-reduce', which is for tasks"),
            ("preflight: {disk: 3 parsecs}", "preflight.disk: is '3 parsecs', must be memory"),
        ],
    )
    def test_mistakes(self, text: str, told: str) -> None:
        with pytest.raises(SpecError, match=told.replace("[", "\\[")):
            loads(f"roles: {{worker: {{command: train}}}}\n{text}\n", "job.yaml", {}, {})

    def test_negative_room_in_a_job_built_in_python(self) -> None:
        job = JobSpec(roles={"worker": Role("w")}, preflight=Preflight(("disk",), disk_mib=-1))
        assert [mistake.place for mistake in find_mistakes(job)] == ["preflight.disk"]


class TestPairs:
    def test_neighbours_are_on_different_nodes(self) -> None:
        order = ring_across_nodes({"a": "n1", "b": "n1", "c": "n2", "d": "n2"})
        assert order == ["a", "c", "b", "d"]

    @pytest.mark.parametrize("count", range(9))
    def test_every_task_has_two_partners_but_the_ends_of_an_odd_ring(self, count: int) -> None:
        names = list(range(count))
        first, second = pair_rounds(names, names)
        for pairs in (first, second):
            busy = [one for pair in pairs for one in pair]
            assert len(busy) == len(set(busy)), "nobody is in two places at once"
        partners = {name: {pair for pair in (*first, *second) if name in pair} for name in names}
        few = [name for name in names if len(partners[name]) < 2]
        assert few == ([] if count % 2 == 0 and count > 2 else [0, count - 1] if count > 2 else names)

    def test_who_has_passed_is_not_asked_again_but_by_a_new_neighbour(self) -> None:
        first, second = pair_rounds(["a", "b", "c", "d", "e", "f"], {"c"})
        assert (first, second) == ([("c", "d")], [("b", "c")])

    def test_one_who_fails_with_both_is_bad(self) -> None:
        passed = [("c", "d"), ("d", "a")]
        assert find_bad_containers([("a", "b"), ("b", "c")], passed) == (["b"], [], [])

    def test_one_who_fails_with_one_partner_only_is_not(self) -> None:
        passed = [("c", "d"), ("b", "c"), ("d", "a")]
        assert find_bad_containers([("a", "b")], passed) == ([], [], [("a", "b")])

    def test_two_bad_neighbours(self) -> None:
        passed = [("d", "e"), ("e", "f"), ("f", "a")]
        bad, doubtful, between = find_bad_containers([("a", "b"), ("b", "c"), ("c", "d")], passed)
        assert (sorted(bad), doubtful, between) == (["b", "c"], [], [])

    def test_of_two_tasks_neither_is_blamed_until_a_third_has_tried(self) -> None:
        assert find_bad_containers([("a", "b")], []) == ([], [("a", "b")], [])
        assert find_bad_containers([("a", "b"), ("a", "new")], []) == (["a"], [], [])


def checked_gang(count: int, *names: str, **job: Any) -> Gang:
    spec = JobSpec(roles={"worker": Role("w", replicas=count)}, preflight=Preflight(names or ("all",)), **job)
    gang = Gang(spec)
    gang.state.preflight.has_other_nodes = True  # the fake engine is called local
    for _ in range(count):
        gang.grant("worker")
    return gang


def join(gang: Gang, task: TaskId) -> None:
    gang.say(str(task), Phase.JOINED, ports={"main": 1}, pair_port=2, checks=(CheckReport(seconds=1.0 + task.index),))


def partners(gang: Gang) -> dict[str, list[str]]:
    director = OrderBuilder("job-1", StagedJob(gang.state.job, "file:///x"), find("generic"))
    found = {}
    for task in gang.state.tasks.values():
        status = next(x.status for x in [last_heard(gang, task.id)])
        orders = director.orders(gang.state, status)
        if orders.pairs is not None:
            found[str(task.id)] = [one.task for one in orders.pairs.rounds if one is not None]
    return found


def last_heard(gang: Gang, id_: TaskId) -> StatusReceived:
    from howdah.wire.messages import Status

    task = gang.state.tasks[id_]
    return StatusReceived(
        gang.now,
        Status(task=str(id_), attempt=task.attempt, epoch=task.epoch, sequence=1, phase=Phase.JOINED, host="h", pid=1),
    )


def exchange(gang: Gang, *bad: TaskId) -> None:
    """All try their partners; with those in `bad` it fails."""
    for name, others in partners(gang).items():
        failed = {one: "no answer" for one in others if {TaskId.parse(one), TaskId.parse(name)} & set(bad)}
        passed = tuple(one for one in others if one not in failed)
        epoch = gang.state.tasks[TaskId.parse(name)].epoch
        report = CheckReport(epoch=epoch, seconds=2.0, passed=passed, failed=failed)
        gang.say(name, Phase.JOINED, ports={"main": 1}, pair_port=2, checks=(CheckReport(), report))


class TestWhatFollows:
    def test_programs_start_when_all_pairs_have_passed(self) -> None:
        gang = checked_gang(4)
        for task in W[:4]:
            join(gang, task)
        assert not gang.recorded(WorldFormed)
        assert sorted(map(len, partners(gang).values())) == [2, 2, 2, 2]
        exchange(gang)
        (passed,) = gang.recorded(PreflightPassed)
        assert (passed.tasks, passed.nodes, passed.seconds, passed.slowest) == (4, 4, 6.0, W[3])
        assert gang.recorded(WorldFormed)
        view = fold(action.event for action in gang.actions_of(RecordEvent))
        assert "pre-flight passed on 4 nodes in 6.0 s; slowest worker:3 on node4" in view.notes

    def test_a_restart_in_place_checks_nothing_again(self) -> None:
        gang = checked_gang(4, retries=1)
        for task in W[:4]:
            join(gang, task)
        exchange(gang)
        for task in W[:4]:
            gang.run(str(task))
        gang.end("worker:1", Exit("exit", 1))
        for task in W[:4]:
            join(gang, task)
        assert len(gang.recorded(WorldFormed)) == 2
        assert len(gang.recorded(PreflightPassed)) == 1

    def test_a_failed_check_is_the_nodes_fault_and_no_retry(self) -> None:
        gang = checked_gang(2, "disk")
        gang.say("worker:1", Phase.ENDED, exit=DISK)
        assert gang.outcome is None
        assert gang.state.node_penalties["node2"] > 1.5
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("node2",)
        assert [strike[0] for strike in gang.actions_of(NoteNodeFailures)[-1].failures] == ["node2"]
        assert gang.actions_of(ReleaseContainer)[-1].container_id == "c2"
        gang.grant("worker")
        for task in W[:2]:
            join(gang, task)
        assert gang.recorded(WorldFormed)

    def test_the_third_node_is_the_last(self) -> None:
        gang = checked_gang(1, "disk")
        for _ in range(3):
            gang.say("worker:0", Phase.ENDED, exit=DISK)
            if gang.outcome is None:
                gang.grant("worker")
        assert gang.outcome is not None
        assert gang.outcome.diagnostics == (f"worker:0 on node3: {DISK}; tried on 3 nodes: node1, node2, node3")

    def test_a_job_fails_at_once_if_no_other_node_exists(self) -> None:
        gang = checked_gang(1, "disk")
        gang.state.preflight.has_other_nodes = False
        gang.say("worker:0", Phase.ENDED, exit=DISK)
        assert gang.outcome is not None
        assert not gang.actions_of(NoteNodeFailures)

    def test_a_node_that_must_be_tried_again_and_fails_again_ends_it(self) -> None:
        gang = checked_gang(1, "disk", timeouts=Timeouts(hold_s=20))
        gang.say("worker:0", Phase.ENDED, exit=DISK)
        gang.wait(21)
        assert any("may have tasks again" in event.text for event in gang.recorded(Noted))
        gang.number = 0  # the same node comes again
        gang.grant("worker")
        gang.say("worker:0", Phase.ENDED, exit=DISK)
        assert gang.outcome is not None
        assert gang.outcome.state is State.FAILED

    def test_the_bad_one_of_the_pairs_is_replaced_and_its_neighbours_try_the_new_one(self) -> None:
        gang = checked_gang(4)
        for task in W[:4]:
            join(gang, task)
        exchange(gang, W[1])
        (ended,) = gang.recorded(Ended)
        assert (ended.task, ended.node, ended.exit.cause) == (W[1], "node2", "preflight")
        assert "all-reduce with worker:0 and with worker:2: no answer" in str(ended.exit)
        gang.grant("worker")
        for task in W[:4]:
            join(gang, task)
        tried = partners(gang)
        assert {name: len(others) for name, others in tried.items()} == {
            "worker:0": 1,
            "worker:1": 2,
            "worker:2": 1,
        } or (len(tried) == 3 and len(tried["worker:1"]) == 2)
        exchange(gang)
        assert gang.recorded(WorldFormed)

    def test_of_two_the_second_try_tells(self) -> None:
        gang = checked_gang(2)
        for task in W[:2]:
            join(gang, task)
        exchange(gang, W[0])
        assert [event.task for event in gang.recorded(Ended)] == [W[1]]
        assert not gang.actions_of(NoteNodeFailures), "nobody knows"
        gang.grant("worker")
        for task in W[:2]:
            join(gang, task)
        exchange(gang, W[0])
        assert [event.task for event in gang.recorded(Ended)] == [W[1], W[0]]
        assert [strike[0] for strike in gang.actions_of(NoteNodeFailures)[-1].failures] == ["node1"]

    def test_when_all_pairs_fail_no_node_is_blamed(self) -> None:
        gang = checked_gang(4)
        for task in W[:4]:
            join(gang, task)
        exchange(gang, *W[:4])
        gang.wait(100)
        assert gang.state.outcome is not None
        assert "no two of 4 tasks can exchange data" in gang.state.outcome.diagnostics
        assert not gang.state.node_penalties

    def test_who_says_nothing_is_replaced_after_the_limit(self) -> None:
        gang = checked_gang(2)
        for task in W[:2]:
            join(gang, task)
        for _ in range(31):
            gang.wait(5)
            for task in W[:2]:
                join(gang, task)
        (ended,) = gang.recorded(Ended)
        assert "nothing heard of it within 150 s" in str(ended.exit)

    def test_who_is_silent_costs_its_partners_nothing(self) -> None:
        gang = checked_gang(3)
        for _ in range(40):
            for task in W[:3]:
                if gang.state.tasks[task].container is not None:
                    join(gang, task)
            gang.wait(5)
        (ended,) = gang.recorded(Ended)
        assert "nothing heard of it within 150 s" in str(ended.exit)
        assert list(gang.state.node_penalties) == [ended.node], "the exchange is over with its first failure"

    def test_an_exchange_that_a_lost_container_has_ended_blames_nobody(self) -> None:
        gang = checked_gang(3)
        for task in W[:3]:
            join(gang, task)
        gang.feed(ContainerEnded(gang.now, "c2", Exit("lost", detail="node lost")))
        gang.grant("worker")
        for _ in range(40):
            gang.say("worker:1", Phase.LOCALISING)
            for task in (W[0], W[2]):
                join(gang, task)
            gang.wait(5)
        assert [event.task for event in gang.recorded(Ended)] == [W[1]]

    def test_the_next_master_goes_on_with_it(self) -> None:
        gang = checked_gang(4)
        for task in W[:4]:
            join(gang, task)
        told = partners(gang)
        gang.take_over()
        gang.state.preflight.has_other_nodes = True
        assert partners(gang) == told
        exchange(gang)
        assert len(gang.recorded(WorldFormed)) == 1
        known = gang.state
        gang.take_over()
        assert {task.paired for task in gang.state.tasks.values()} == {task.paired for task in known.tasks.values()}


class TestAssignment:
    def test_only_what_is_wanted_travels(self) -> None:
        job = JobSpec(roles={"worker": Role("w")}, preflight=Preflight(("disk", "all-reduce")))
        state = GangState.for_job("job-1", job)
        director = OrderBuilder("job-1", StagedJob(job, "file:///x"), find("generic"))
        order = director.assignment(state, state.tasks[W[0]]).checks
        assert (order.checks, order.pairs) == (("disk",), True)
        everything = JobSpec(roles={"worker": Role("w")}, preflight=Preflight(("all",)))
        state = GangState.for_job("job-1", everything)
        assert director.assignment(state, state.tasks[W[0]]).checks.checks == ("disk", "memory"), "it has no GPUs"
        assert Assignment("x").checks.checks == ()
        assert Goal.JOIN.value == "join"


class TestHere:
    """The checks themselves, on this machine."""

    def request(self, directory: Path, disk_mib: int = 1, **changed: Any) -> LocalChecksRequest:
        base = {
            "order": CheckOrder(("memory", "disk"), disk_mib),
            "directory": str(directory),
            "memory_mib": 1,
            "gpus": 0,
        }
        return LocalChecksRequest(**{**base, "python": sys.executable, "variables": {}, **changed})

    def test_a_file_comes_back_and_is_removed(self, tmp_path: Path) -> None:
        word, text = local_checks.disk(self.request(tmp_path))
        assert (word, "free, " in text) == ("found", True)
        assert not list(tmp_path.iterdir())

    def test_too_little_room(self, tmp_path: Path) -> None:
        word, text = local_checks.disk(self.request(tmp_path, disk_mib=1 << 40))
        assert word == "error"
        assert text.endswith("wanted 1073741824.0 GiB")

    def test_more_memory_than_there_is(self, tmp_path: Path) -> None:
        word, text = local_checks.memory_limits(self.request(tmp_path, memory_mib=1 << 30))
        assert (word, "wanted 1048576.0 GiB (resources.memory)" in text) == ("error", True)

    def test_gpus_that_are_not_here(self, tmp_path: Path) -> None:
        variables = {"HOWDAH_GPU_COUNT": "4", "CUDA_VISIBLE_DEVICES": "2"}
        asked = self.request(tmp_path, gpus=2, variables=variables)
        assert local_checks.gpu(asked) == ("error", "1 GPUs are here (4 on the node), wanted 2")
        assert local_checks.gpu(self.request(tmp_path)) == ("left_out", "no GPUs are asked for")

    def test_without_torch_it_is_said(self, tmp_path: Path) -> None:
        word, text = local_checks.matmul(self.request(tmp_path))
        assert (word, "has no torch" in text) == ("left_out", True)

    def test_the_program_stops_at_the_first_failure(self, tmp_path: Path) -> None:
        request = self.request(tmp_path, disk_mib=1 << 40)
        done = subprocess.run(
            [sys.executable, "-m", "howdah.executor.preflight.local_checks"],
            input=json.dumps(encode(request)).encode(),
            capture_output=True,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [next(iter(line)) for line in lines] == ["begun", "found", "begun", "error"]
        assert lines[-1]["error"].startswith("disk: ")


EXCHANGE = """
import os, sys
from howdah.executor.preflight.pair_exchange import PairExchange
from howdah.executor.preflight.requests import PairExchangeRequest
from howdah.wire.helper_main import run_helper_main

def exchange(request: PairExchangeRequest) -> None:
    PairExchange(request, lambda: float(os.readlink(clock))).run()

clock = sys.argv.pop()
run_helper_main({"exchange": exchange})
"""
"""Exchanges data; what time it is, a symbolic link says, which is changed in one piece."""


class TestExchange:
    LIMIT_S = 600.0
    """For both rounds: what is really waited for comes long before."""

    def listener(self) -> socket.socket:
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        return one

    def begin(self, task: str, listener: socket.socket, others: list[Partner | None], clock: Path) -> Popen[bytes]:
        order = PairOrder(1, tuple(others), self.LIMIT_S)
        request = PairExchangeRequest(order, task, listener.fileno(), 0, "", {})
        command = [sys.executable, "-c", EXCHANGE, str(clock)]
        process = Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[listener.fileno()])
        assert process.stdin is not None
        process.stdin.write(json.dumps(encode(request)).encode())
        process.stdin.close()
        return process

    def told(self, process: Popen[bytes]) -> list[dict[str, Any]]:
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        process.wait()
        return lines

    def set_clock(self, clock: Path, seconds: float) -> Path:
        new = clock.with_suffix(".new")
        new.symlink_to(str(seconds))
        return new.rename(clock)

    def test_three_tasks_of_which_one_never_comes(self, tmp_path: Path) -> None:
        """a and b exchange data, though a waits for c first."""

        def partner(name: str, listens: bool) -> Partner:
            return Partner(name, "127.0.0.1", ports[name].getsockname()[1], listens)

        clock = self.set_clock(tmp_path / "clock", 0.0)
        with contextlib.ExitStack() as stack:
            ports = {name: stack.enter_context(self.listener()) for name in "abc"}
            first = stack.enter_context(self.begin("a", ports["a"], [partner("c", False), partner("b", True)], clock))
            stack.callback(first.kill)
            assert first.stdout is not None
            assert json.loads(first.stdout.readline()) == {"begun": "all-reduce with c"}
            self.set_clock(clock, 301.0)  # half of the time is over, which a sees when a caller comes, or after 5 s
            stack.enter_context(socket.create_connection(ports["a"].getsockname(), 60))
            second = stack.enter_context(self.begin("b", ports["b"], [None, partner("a", False)], clock))
            stack.callback(second.kill)
            mine, theirs = self.told(first), self.told(second)
        assert [line["why"] for line in mine if "failed" in line] == ["nothing of c after 301 s"]
        assert [line["passed"] for line in mine if "passed" in line] == ["b"]
        assert [line["passed"] for line in theirs if "passed" in line] == ["a"]
