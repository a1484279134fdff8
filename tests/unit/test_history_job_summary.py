"""Tests what the history's list takes from an event log: GPU hours, and why they were wasted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest
from history_jobs import BEGAN, OK, begun, ended, launched
from hypothesis import given
from hypothesis import strategies as st

from howdah.api import recorded_log
from howdah.api.recorded_log import LineReader
from howdah.history.job_summary import JobSummary
from howdah.spec import Exit, Outcome, State, TaskId, event_lines
from howdah.spec.events import KINDS as EVENT_KINDS
from howdah.spec.events import (
    Ended,
    Event,
    GangReleased,
    GangRestarted,
    JobFinished,
    Joined,
    Launched,
    Started,
    Used,
    WorldFormed,
)
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage

FIRST, SECOND = TaskId("worker", 0), TaskId("worker", 1)

KEYS = ("task", "role", "index", "exit", "code", "job", "roles", "time")
KINDS = (*EVENT_KINDS, "New")
VALUES = st.recursive(
    st.none() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


def digest(*events: Iterable[Event]) -> JobSummary:
    made = JobSummary()
    made.feed(event_lines.to_line(event).rstrip().encode() for event in itertools.chain(*events))
    return made


def end(task: TaskId, at: float, exit: Exit = OK, epoch: int = 1, attempt: int = 1, counts: bool = True) -> list[Event]:
    return [Ended(BEGAN + at, task, attempt, epoch, exit, counts=counts)]


def over(state: State, at: float, exit: Exit | None = None) -> list[Event]:
    return [JobFinished(BEGAN + at, Outcome(state, "so it was", None, exit))]


class TestTail:
    @given(st.lists(st.binary(max_size=30)), st.lists(st.integers(1, 20), min_size=1))
    def test_any_pieces_give_the_same_lines(self, lines: list[bytes], sizes: list[int]) -> None:
        data = b"\n".join(lines)
        whole = data.split(b"\n")[:-1]
        read = LineReader()
        pieces, rest = [], data
        for size in itertools.cycle(sizes):
            if not rest:
                break
            pieces.append(rest[:size])
            rest = rest[size:]
        assert [line for part in read.lines(pieces) for line in part] == whole
        assert data[read.offset :] == data.split(b"\n")[-1]

    def test_goes_on_where_it_stopped(self) -> None:
        read = LineReader()
        assert list(read.lines([b"one\ntw"])) == [[b"one"]]
        assert list(read.lines([b"two\n"])) == [[b"two"]]
        assert read.offset == 8

    def test_passes_over_what_is_too_long_for_memory(self) -> None:
        long = [b"x" * (recorded_log.MAX_LINE // 2)] * 8
        read = LineReader()
        assert list(read.lines([b"one\n", *long])) == [[b"one"]]
        assert (read.skipping, read.skipped, read.offset) == (True, 1, 4 + 4 * recorded_log.MAX_LINE)
        assert list(read.lines([b"end of it\nnext\n"])) == [[b"next"]]
        assert not read.skipping


class TestHours:
    def test_a_job_that_ended_well_wastes_nothing(self) -> None:
        found = digest(begun(0), ended(0))
        assert (found.gpu_hours, found.wasted, found.cause, found.duration) == (2.0, {}, "", 3600.0)
        assert (found.tasks, found.gpu_count, found.progress) == (2, 2, 1.0)

    def test_a_failed_attempt_and_those_stopped_because_of_it(self) -> None:
        failed = [*end(FIRST, 3600, Exit("memory")), GangRestarted(BEGAN + 3600, 2, "worker:0")]
        stopped = end(SECOND, 3600, Exit("stopped"), counts=False)
        again = [
            *launched(0, 0, BEGAN + 3600, 2, 2),
            *launched(0, 1, BEGAN + 3600, 2, 2),
            WorldFormed(BEGAN + 3610, 2),
        ]
        good = [*end(FIRST, 7200, epoch=2, attempt=2), *end(SECOND, 7200, epoch=2, attempt=2)]
        found = digest(begun(0), failed, stopped, again, good, over(State.SUCCEEDED, 7200))
        assert (found.gpu_hours, found.wasted, found.state) == (4.0, {"memory": 2.0}, "SUCCEEDED")

    @pytest.mark.parametrize("stored", [False, True], ids=["at-once", "read-again"])
    def test_a_program_that_starts_again_in_its_container(self, stored: bool) -> None:
        failed = [*end(FIRST, 3600, Exit("exit", 1)), GangRestarted(BEGAN + 3600, 2, "worker:0")]
        stopped = end(SECOND, 3600, Exit("stopped"), counts=False)
        again: list[Event] = [Joined(BEGAN + 3601, task, 1, 2, "node0", {}) for task in (FIRST, SECOND)]
        again += [Started(BEGAN + 3602, task, 1, 2, 77, "python3") for task in (FIRST, SECOND)]
        good = [*end(FIRST, 7200, epoch=2), *end(SECOND, 7200, epoch=2)]
        found = digest(begun(0), failed, stopped)
        container = found.changed["worker:0", 1].container
        found = JobSummary.load(found.dump()) if stored else found
        found.feed(event_lines.to_line(event).rstrip().encode() for event in [*again, *good])
        assert (found.gpu_hours, found.cpu_hours, found.wasted) == (4.0, 4.0, {"exit": 2.0})
        span = found.changed["worker:0", 1]
        assert (span.container, span.pid, span.since, span.until) == (container, 77, BEGAN, BEGAN + 7200)

    def test_an_attempt_whose_launch_is_not_in_the_log_did_not_begin_in_1970(self) -> None:
        found = digest(begun(0), end(FIRST, 3600), [Joined(BEGAN + 3700, FIRST, 2, 2, "node0", {})], end(FIRST, 3800))
        assert 1.0 <= found.cpu_hours < 1.1

    def test_a_failed_job_wastes_what_it_stopped(self) -> None:
        failed = [*end(FIRST, 3600, Exit("exit", 3)), *end(SECOND, 3600, Exit("stopped"), counts=False)]
        found = digest(begun(0), failed, over(State.FAILED, 3601, Exit("exit", 3)))
        assert (found.wasted, found.cause) == ({"exit": 2.0}, "exit")

    def test_what_was_done_counts_in_a_failed_job_too(self) -> None:
        found = digest(
            begun(0), end(FIRST, 1800), end(SECOND, 3600, Exit("lost")), over(State.FAILED, 3600, Exit("lost"))
        )
        assert (found.gpu_hours, found.wasted) == (1.5, {"lost": 1.0})

    def test_a_cancelled_job(self) -> None:
        found = digest(begun(0), over(State.CANCELLED, 3600))
        assert (found.wasted, found.cause) == ({"cancelled": 2.0}, "cancelled")

    def test_a_parameter_server_stopped_at_the_end_is_no_waste(self) -> None:
        stopped = end(SECOND, 3600, Exit("stopped"), counts=False)
        found = digest(begun(0), end(FIRST, 3600), stopped, over(State.SUCCEEDED, 3600))
        assert found.wasted == {}

    def test_containers_given_back_before_the_gang_was_whole(self) -> None:
        found = digest(begun(0), [GangReleased(BEGAN + 3600, "no room", 60.0)])
        assert (found.wasted, found.live) == ({"released": 2.0}, {})

    def test_clocks_that_disagree_make_nothing_negative(self) -> None:
        found = digest(begun(0), end(FIRST, -7200), over(State.SUCCEEDED, -9999))
        assert found.duration == 0.0
        assert found.gpu_hours >= 0.0
        assert all(attempt.until >= attempt.since for attempt in found.changed.values())


class TestTold:
    def test_agrees_with_the_fold(self) -> None:
        used = [
            Used(BEGAN + 20, FIRST, Usage(100.0, 120.0, 1.0, 0.5)),
            Used(BEGAN + 30, SECOND, Usage(progress=0.25)),
        ]
        events = [*begun(3, name="n", queue="q", framework="pytorch"), *used]
        found, view = digest(events), fold(events)
        assert view.job is not None
        assert (found.name, found.queue, found.framework) == (view.job.name, view.job.queue, view.job.framework)
        assert (found.state, found.started, found.user) == (view.state.value, view.started, view.user)
        assert found.progress == view.progress == 0.375

    def test_goes_on_from_what_was_kept(self) -> None:
        events = [*begun(1), *ended(1, State.FAILED, "why")]
        for at in range(len(events)):
            first = digest(events[:at])
            second = JobSummary.load(first.dump())
            second.feed(event_lines.to_line(event).rstrip().encode() for event in events[at:])
            assert second.dump() == digest(events).dump(), at

    def test_gpus_and_containers_that_changed_hands(self) -> None:
        used = Used(BEGAN + 50, FIRST, Usage(gpus=(Gpu("3"), Gpu("5"))))
        moved = Launched(BEGAN + 60, SECOND, 2, next(iter(launched(0, 0, 0.0, 1, 1))).container, giver=FIRST)  # type: ignore[attr-defined]
        found = digest(begun(0), [used, moved])
        assert found.changed["worker:0", 1].gpus == "3,5"
        assert list(found.live) == ["worker:1"]
        assert found.wasted == {}

    def test_a_summary_that_an_earlier_version_stored_is_read(self) -> None:
        found = JobSummary.load(
            '{"state": "RUNNING", "told": {"worker:0": 0.5, "worker:1": 1.0}, "bad": 2, "live": {}}'
        )
        assert (found.progress, found.malformed_lines) == (0.75, 2)
        assert {"told", "bad"} < json.loads(found.dump()).keys()


class TestHostile:
    @pytest.mark.parametrize(
        "line",
        [
            b"null",
            b"[]",
            b"{",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"kind":"JobStarted","job":[]}',
            b'{"kind":"JobStarted","time":1e400,"job":{"roles":{"a":{"replicas":"many"}}}}',
            b'{"kind":"Ended","task":{"role":"worker"}}',
            b'{"kind":"JobFinished","time":1,"outcome":{"state":"MAYBE"}}',
            b'{"kind":["JobStarted"]}',
        ],
    )
    def test_a_bad_line_is_counted_and_changes_nothing_else(self, line: bytes) -> None:
        found = digest(begun(0))
        before = found.dump()
        found.feed([line])
        after = found.dump()
        assert json.loads(after) == {**json.loads(before), "bad": 1}

    def test_numbers_and_texts_that_no_page_could_take(self) -> None:
        found = JobSummary()
        name = '"\\ud800' + "x" * 5000 + '"'
        found.feed(
            [
                b'{"kind":"JobStarted","time":NaN,"user":{"a":1},"job":{"name":%b,"roles":{}}}' % name.encode(),
                b'{"kind":"JobFinished","time":Infinity,"outcome":{"state":"FAILED","diagnostics":7}}',
            ]
        )
        assert (found.started, found.finished, found.diagnostics) == (0.0, 0.0, "7")
        assert len(found.name) < 210
        found.name.encode()

    @given(VALUES, st.sampled_from(KINDS))
    def test_any_record_of_any_kind(self, value: object, kind: str) -> None:
        record = {**(value if isinstance(value, dict) else {"task": value}), "kind": kind}
        found = digest(begun(0))
        found.feed([json.dumps(record).encode()])
        assert found.duration >= 0.0
        JobSummary.load(found.dump())
