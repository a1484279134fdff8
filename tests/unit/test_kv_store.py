"""Tests the key-value store, barriers and metrics of `howdah.program`, without a network."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.errors import Conflict, InvalidRequest, LimitExceeded
from howdah.master.journal import Journal
from howdah.master.owned_file import LogOwnerChanged
from howdah.master.program_api.barriers import BarrierName, Barriers
from howdah.master.program_api.kv_store import MAX_KEYS, KeyValueStore, Owner, Value
from howdah.master.program_api.metrics import FEW, FIRST_POINTS, MAX_METRICS, MetricThinning
from howdah.spec import TaskId
from howdah.spec.events import JobStarted, Measured
from howdah.spec.fold import fold
from howdah.spec.job import JobSpec, Role
from howdah.storage.factory import filesystem
from howdah.wire.program_protocol import MAX_TOTAL, MAX_VALUE

WORKERS = [TaskId("worker", index) for index in range(4)]
MANY = (
    '{{"put":"{}","value":{{"text":""}},"revision":1,"life":"job","deadline":0,"op":"",'
    '"owner":{{"task":{{"role":"worker","index":0}},"attempt":1,"epoch":1}}}}'
)
ONE, TWO = Owner(WORKERS[0], 1, 1), Owner(WORKERS[1], 1, 1)


def put(
    store: KeyValueStore, key: str, text: str = "v", owner: Owner = ONE, life: str = "epoch", deadline: float = 0.0
) -> None:
    store.put(key, Value(text), owner, life, deadline, f"op-{key}-{text}")


def names(store: KeyValueStore, prefix: str = "", since: int = 0) -> list[str]:
    return [key for key, _ in store.newer(prefix, since)]


class TestStore:
    def test_what_is_newer_comes_in_the_order_of_change(self) -> None:
        store = KeyValueStore(lambda _: None)
        for key in ("a/1", "a/2", "b/1"):
            put(store, key)
        seen = store.revision
        put(store, "a/1", "again")
        assert names(store) == ["a/2", "b/1", "a/1"]
        assert names(store, "a/", seen) == ["a/1"]
        assert store.keys("a/") == ["a/1", "a/2"]
        assert names(store, "", store.revision) == []

    def test_a_change_is_made_once_however_often_it_is_asked_for(self) -> None:
        store = KeyValueStore(lambda _: None)
        assert store.put("k", Value("v"), ONE, "job", 0.0, "op") == ("k",)
        assert store.put("k", Value("v"), ONE, "job", 0.0, "op") == ()
        assert store.revision == 1

    def test_a_job_has_at_most_so_many_values(self) -> None:
        store = KeyValueStore(lambda _: None)
        store.restore([MANY.format(number) for number in range(MAX_KEYS)])
        put(store, "0", "anew")
        with pytest.raises(LimitExceeded, match=f"the job has {MAX_KEYS} keys already"):
            put(store, "one more")

    @pytest.mark.parametrize(
        ("life", "after_end", "after_restart"),
        [("job", True, True), ("epoch", True, False), ("program", False, False)],
    )
    def test_how_long_a_key_lives(self, life: str, after_end: bool, after_restart: bool) -> None:
        store = KeyValueStore(lambda _: None)
        put(store, "k", life=life)
        put(store, "other", owner=TWO, life="program")
        store.drop_owned_by(store.owners(ONE.task), ended=lambda _: True)
        assert (store.get("k") is not None) == after_end
        store.drop_owned_by(store.owners(ONE.task), ended=lambda _: False)
        assert (store.get("k") is not None) == after_restart
        assert store.get("other") is not None

    def test_the_last_who_put_it_keeps_it_alive(self) -> None:
        store = KeyValueStore(lambda _: None)
        put(store, "k", "of one", ONE, "program")
        put(store, "k", "of two", TWO, "program")
        assert store.drop_owned_by([ONE], ended=lambda _: True) == ()
        assert store.drop_owned_by([TWO], ended=lambda _: True) == ("k",)
        assert (store.bytes, store.owners()) == (0, [])

    def test_a_deadline_is_that_of_the_last_put(self) -> None:
        store = KeyValueStore(lambda _: None)
        put(store, "k", "first", deadline=10.0)
        put(store, "k", "renewed", deadline=20.0)
        assert store.expire(15.0) == ()
        assert store.expire(20.0) == ("k",)
        put(store, "k", "for good")
        assert store.expire(1e9) == ()

    def test_deadlines_that_are_put_off_are_so_for_the_next_master_too(self) -> None:
        lines: list[str] = []
        store, again = KeyValueStore(lines.append), KeyValueStore(lambda _: None)
        put(store, "a", deadline=10.0)
        put(store, "b")
        store.shift_deadlines(lambda deadline: deadline + 5.0)
        again.restore(lines)
        for one in (store, again):
            assert one.expire(12.0) == ()
            assert one.expire(15.0) == ("a",)
            assert names(one) == ["b"]

    def test_removals_are_told_by_their_number(self) -> None:
        store = KeyValueStore(lambda _: None)
        put(store, "k")
        seen = store.revision
        assert store.remove("k", "not there") == ("k",)
        assert store.removed_at > seen
        assert store.remove("k") == ()

    def test_limits(self) -> None:
        store = KeyValueStore(lambda _: None)
        with pytest.raises(InvalidRequest, match="1 to 512 bytes, not 0"):
            put(store, "")
        with pytest.raises(InvalidRequest, match="not 513"):
            put(store, "k" * 513)
        with pytest.raises(LimitExceeded, match=f"{MAX_VALUE + 1} bytes; a value has at most"):
            put(store, "k", "v" * (MAX_VALUE + 1))
        whole = Value(base64.b64encode(b"\0" * MAX_VALUE).decode(), binary=True)
        assert whole.size == MAX_VALUE
        for number in range(MAX_TOTAL // MAX_VALUE - 1):
            store.put(str(number), whole, ONE, "job", 0.0, str(number))
        put(store, "x", "v" * (MAX_VALUE - 1000))
        with pytest.raises(LimitExceeded, match="no room: with it the job's keys would have"):
            put(store, "y", "v" * MAX_VALUE)
        store.put("0", Value(""), ONE, "job", 0.0, "smaller")
        put(store, "y", "v" * MAX_VALUE)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["put", "remove", "forget", "expire"]),
                st.sampled_from(["a", "b", "ü\ud800", "c"]),
                st.sampled_from([ONE, TWO]),
                st.sampled_from(["job", "epoch", "program"]),
                st.sampled_from([0.0, 5.0, 9.0]),
            ),
            max_size=30,
        )
    )
    def test_the_journal_tells_the_next_master_all(self, steps: list[tuple[str, str, Owner, str, float]]) -> None:
        lines: list[str] = []
        store = KeyValueStore(lines.append)
        for number, (what, key, owner, life, time) in enumerate(steps):
            if what == "put":
                store.put(key, Value(f"v{number}"), owner, life, time, str(number))
            elif what == "remove":
                store.remove(key)
            elif what == "forget":
                store.drop_owned_by([owner], ended=lambda _, number=number: number % 2 == 0)
            else:
                store.expire(time)
        for told in (lines, store.lines()):
            again = KeyValueStore(lambda _: None)
            again.restore([*told, '{"put": "cut sh'])
            assert {key: again.get(key) for key in again.keys("")} == {key: store.get(key) for key in store.keys("")}
            assert (again.bytes, set(again.owners())) == (store.bytes, set(store.owners()))
            assert again.revision > store.revision, "what a watcher may have seen is never used again"
            assert names(again) == names(store)


class TestBarriers:
    def test_it_opens_with_the_last_one(self) -> None:
        lines: list[str] = []
        barriers, name, needed = Barriers(lines.append), BarrierName("start", 1, 1), frozenset(WORKERS[:2])
        meeting = barriers.arrive(name, "p1", ONE, None, needed)
        assert barriers.arrive(name, "p1", ONE, None, needed) is meeting, "it says so again"
        assert (meeting.complete, meeting.missing_text) == (False, "1 of 2 have come; missing: worker:1")
        assert barriers.arrive(name, "p2", TWO, None, needed).complete
        assert barriers.passed(name)
        assert not barriers.passed(BarrierName("start", 1, 2))
        assert not barriers.passed(BarrierName("start", 2, 1)), "all have been started again: the rounds begin anew"
        again = Barriers(lines.append)
        again.restore([*lines, "garbage", "[1]"])
        assert again.completed == barriers.completed

    def test_a_count_is_of_processes(self) -> None:
        barriers, name = Barriers(lambda _: None), BarrierName("some", 1, 1)
        assert not barriers.arrive(name, "p1", ONE, 3, frozenset()).complete
        meeting = barriers.arrive(name, "p2", ONE, 3, frozenset())
        assert meeting.missing_text == "2 of 3 have come"
        assert barriers.arrive(name, "p3", TWO, 3, frozenset()).complete

    def test_who_gives_up_or_is_gone_is_missing_again(self) -> None:
        barriers, name, needed = Barriers(lambda _: None), BarrierName("start", 1, 1), frozenset(WORKERS[:3])
        barriers.arrive(name, "p1", ONE, None, needed)
        meeting = barriers.arrive(name, "p2", TWO, None, needed)
        barriers.withdraw(name, "p1")
        assert meeting.missing == {WORKERS[0], WORKERS[2]}
        barriers.forget(lambda owner: owner != TWO)
        assert meeting.missing == {*WORKERS[:3]}
        assert not barriers.arrive(name, "p3", Owner(WORKERS[2], 1, 1), None, needed).complete
        barriers.withdraw(name, "nobody")

    def test_others_mean_something_else_by_the_name(self) -> None:
        barriers, name = Barriers(lambda _: None), BarrierName("start", 1, 1)
        barriers.arrive(name, "p1", ONE, 3, frozenset())
        with pytest.raises(Conflict, match="another count or other roles"):
            barriers.arrive(name, "p2", TWO, 4, frozenset())

    def test_one_that_has_ended_will_not_come(self) -> None:
        barriers = Barriers(lambda _: None)
        meeting = barriers.arrive(BarrierName("start", 1, 1), "p1", ONE, None, frozenset(WORKERS[:2]))
        barriers.ended(WORKERS[1], "exit code 0")
        assert meeting.unreachable_reason == "worker:1 will not come: exit code 0"

    def test_what_is_over_for_good_is_forgotten(self) -> None:
        barriers = Barriers(lambda _: None)
        for scope in (1, 5):
            barriers.arrive(BarrierName("start", scope, 1), "p1", ONE, 1, frozenset())
        barriers.prune(5)
        assert list(barriers.completed) == [("start", 5)]
        assert [json.loads(line)["scope"] for line in barriers.lines()] == [5]


class TestMetrics:
    def test_a_curve_grows_ever_more_slowly_and_ends_with_its_last_point(self) -> None:
        metrics, kept = MetricThinning(), []
        for second in range(0, 100_000, 5):
            kept += metrics.add(WORKERS[0], [("loss", second, 1.0 / (1 + second), float(second))])[0]
        assert FIRST_POINTS < len(kept) < FIRST_POINTS + 1000
        assert [point.step for point in kept[:3]] == [0, 5, 10]
        kept += metrics.end(WORKERS[0])
        assert kept[-1].step == 99_995
        assert metrics.end(WORKERS[0]) == []

    def test_too_many_are_refused_by_name(self) -> None:
        metrics = MetricThinning()
        assert metrics.add(WORKERS[0], [(f"c{n}", None, 0.0, 1.0) for n in range(MAX_METRICS)])[1] == ""
        kept, problem = metrics.add(WORKERS[1], [("c0", None, 0.0, 1.0), ("c0", None, 0.0, 9.0)])
        assert (kept, problem) == ([], "the job has 500 metrics already: no room for c0 of worker:1")

    def test_the_next_master_goes_on_with_it(self) -> None:
        metrics = MetricThinning()
        for number in range(FIRST_POINTS):
            metrics.restore(Measured(100.0 * number / FIRST_POINTS, WORKERS[0], "loss", 1.0))
        assert metrics.add(WORKERS[0], [("loss", None, 1.0, 100.5)])[0] == []
        assert len(metrics.add(WORKERS[0], [("loss", None, None, 101.5)])[0]) == 1

    def test_a_short_training_keeps_every_point(self) -> None:
        points = [("loss", step, 1.0, 100.0 + step / FIRST_POINTS) for step in range(2 * FIRST_POINTS)]
        kept = MetricThinning().add(WORKERS[0], points)[0]
        assert [point.step for point in kept[:FIRST_POINTS]] == list(range(FIRST_POINTS))
        assert len(kept) <= FIRST_POINTS + 2

    def test_many_metrics_keep_fewer_of_their_first_points(self) -> None:
        metrics, names = MetricThinning(), [f"c{number}" for number in range(MAX_METRICS)]
        first = FIRST_POINTS * FEW // MAX_METRICS
        for number in range(first):
            metrics.add(WORKERS[0], [(name, number, 0.0, number / 100) for name in names])
        assert metrics.add(WORKERS[0], [(name, first, 0.0, first / 100) for name in names])[0] == []

    def test_people_see_them(self) -> None:
        points = [Measured(float(t), WORKERS[0], "loss", 1.0 / t, t) for t in (1, 2, 2, 4)]
        job = JobSpec(roles={"worker": Role("train")})
        view = fold([JobStarted(0.0, "j", "local", "alice", job), *points])
        assert [point.step for point in view.tasks[WORKERS[0]].metrics["loss"]] == [1, 2, 4]


class TestJournal:
    def test_it_is_rewritten_while_lines_come(self, tmp_path: Path) -> None:
        async def work() -> None:
            journal = Journal(f"file://{tmp_path}/here.jsonl", "values")
            for number in range(100):
                journal.write(f"{number}\n")
            replacing = asyncio.create_task(journal.replace(["all\n"]))
            await asyncio.sleep(0)
            journal.write("late\n")
            await replacing
            journal.write("last\n")
            assert journal.size == len("all\nlate\nlast\n")
            journal.close()

        asyncio.run(work())
        assert Journal(f"file://{tmp_path}/here.jsonl", "values").read() == ["all", "late", "last"]
        assert (tmp_path / "here.jsonl").stat().st_mode & 0o777 == 0o600

    def test_what_cannot_be_written_is_kept_and_said_once(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async def work() -> None:
            journal = Journal(f"nonsense://{tmp_path}/here.jsonl", "values")
            journal.write("one\n")
            assert not await journal.flush()
            assert not await journal.flush()

        asyncio.run(work())
        assert capsys.readouterr().err.count("values: ") == 1

    def test_a_line_that_was_cut_short_does_not_spoil_the_next(self, tmp_path: Path) -> None:
        (tmp_path / "j").write_text('{"whole":1}\n{"cut')
        journal = Journal(f"file://{tmp_path}/j", "values")
        assert journal.read() == ['{"whole":1}', '{"cut']
        journal.write("next\n")
        journal.close()
        assert (tmp_path / "j").read_text() == '{"whole":1}\n{"cut\nnext\n'

    def test_a_master_that_was_replaced_writes_no_more(self) -> None:
        uri = f"memory://journals/{os.getpid()}/events.jsonl"

        async def work() -> None:
            old, new = Journal(uri, "event log"), Journal(uri, "event log")
            old.write("one\n")
            assert await old.flush()
            assert new.read() == ["one"]
            new.write("took over\n")
            assert await new.flush()
            old.write("two\n")
            with pytest.raises(LogOwnerChanged):
                await old.flush()
            new.write("three\n")
            assert await new.flush()
            assert new.read() == ["one", "took over", "three"]

        asyncio.run(work())

    def test_what_a_failed_append_brought_is_not_brought_again(self) -> None:
        uri = f"memory://journals/{os.getpid()}/half.jsonl"

        async def work() -> None:
            journal = Journal(uri, "event log")
            journal.write("one\n")
            assert await journal.flush()
            journal.write("two\n")
            filesystem(uri).append(uri, b"tw")  # it came so far, and the answer was lost
            assert await journal.flush()
            assert journal.read() == ["one", "two"]

        asyncio.run(work())
