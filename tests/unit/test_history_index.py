"""Tests the history index of directories that grow, change, vanish or hold other things; and its result pages."""

from __future__ import annotations

import base64
import itertools
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from history_jobs import BEGAN, begun, container, ended, job_id, whole, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.engines.local.engine import LocalEngine
from howdah.errors import InvalidRequest
from howdah.history import queries
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index, IndexedJob
from howdah.history.job_summary import JobSummary
from howdah.history.options import ShownCluster
from howdah.history.retention import sweep
from howdah.history.running_jobs import FORGOTTEN_S, RunningJobs
from howdah.spec import State, TaskId, event_lines, uris
from howdah.spec.events import Measured


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    (place / "jobs").mkdir(parents=True)
    return place


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "index") as made:
        assert made.claim()
        yield made


def scan(index: Index, *homes: Path) -> int:
    """How many jobs were read; every directory is listed anew."""
    looked = Scanner(index, map(uris.of_local, homes)).scan()
    assert not looked.problems
    return looked.read


def page(index: Index, **query: str) -> dict[str, Any]:
    return queries.page(index.connection, {name.rstrip("_"): value for name, value in query.items()}, time.time())


def names(index: Index, **query: str) -> list[str]:
    return [row["name"] for row in page(index, **query)["jobs"]]


def only(index: Index) -> dict[str, Any]:
    (row,) = page(index)["jobs"]
    return dict(row)


class TestScan:
    def test_a_log_that_grows_is_read_on(self, index: Index, home: Path) -> None:
        events = [*begun(1), *ended(1, State.FAILED, "why")]
        for event in events:
            write(home, job_id(1), [event])
            assert scan(index, home) == 1
        grown = only(index)
        with Index(index.directory.with_name("again")) as again:
            assert again.claim()
            scan(again, home)
            assert grown == only(again)
        assert (grown["state"], grown["cause"], grown["wasted_gpu_hours"]) == ("FAILED", "memory", 2.0)
        assert scan(index, home) == 0

    def test_a_half_written_line_is_waited_for(self, index: Index, home: Path) -> None:
        log = write(home, job_id(1), begun(1), more='{"kind":"JobFinished","time":')
        scan(index, home)
        assert only(index)["state"] == "RUNNING"
        with log.open("a") as file:
            file.write('1700004000.0,"outcome":{"state":"SUCCEEDED"}}\n')
        scan(index, home)
        assert only(index)["state"] == "SUCCEEDED"

    def test_what_is_no_log(self, index: Index, home: Path) -> None:
        for number, content in enumerate((b"", b"\x00\xff" * 5000, b"{}\n" * 3, b"x" * 9_000_000 + b"\n")):
            directory = home / "jobs" / job_id(number)
            directory.mkdir()
            (directory / "events.jsonl").write_bytes(content)
        (home / "jobs" / "no-log").mkdir()
        (home / "jobs" / "a-file").write_text("")
        (home / "jobs" / job_id(8)).mkdir()
        (home / "jobs" / job_id(8) / "events.jsonl").mkdir()
        now = time.time()
        for directory in (home / "jobs" / job_id(8), home / "jobs" / job_id(8) / "events.jsonl"):
            os.utime(directory, (now, now))  # the clock may tick between the two
        whole(home, 9)
        scan(index, home)
        listed = page(index)
        assert listed["total"] == 7
        assert listed["jobs"][-1]["name"] == "job-9"
        said = {row["diagnostics"] for row in listed["jobs"]}
        assert "its event log can't be read" in said
        assert scan(index, home) == 0

    def test_kinds_it_does_not_know_and_garbage_between(self, index: Index, home: Path) -> None:
        first, second = list(begun(1)), list(ended(1))
        write(home, job_id(1), first, more='{"kind":"FromTheFuture","time":1,"x":{}}\nnot json\n\n')
        write(home, job_id(1), second)
        scan(index, home)
        assert only(index)["state"] == "SUCCEEDED"

    def test_a_log_that_was_replaced(self, index: Index, home: Path) -> None:
        log = write(home, job_id(1), begun(1))
        scan(index, home)
        log.unlink()
        write(home, job_id(1), (*begun(1, name="another"), *ended(1)))
        scan(index, home)
        assert (only(index)["name"], only(index)["gpu_hours"]) == ("another", 2.0)

    def test_directories_that_are_gone(self, index: Index, home: Path) -> None:
        for number in range(3):
            whole(home, number)
        scan(index, home)
        log = home / "jobs" / job_id(1)
        (log / "events.jsonl").unlink()
        log.rmdir()
        scan(index, home)
        assert names(index) == ["job-2", "job-0"]
        assert queries.trace(index.connection, container(1, 0)) is None
        (home / "jobs").rename(home / "moved")
        scan(index, home)
        assert page(index)["total"] == 0

    def test_homes_of_all_users_as_far_as_they_may_be_read(self, index: Index, tmp_path: Path) -> None:
        for number, user in enumerate(("ann", "bob", "eve")):
            whole(tmp_path / "user" / user / ".howdah", number)
        (tmp_path / "user" / "nobody").mkdir()
        (tmp_path / "user" / "file").write_text("")
        root = uris.of_local(tmp_path / "user").rstrip("/") + "/*/.howdah"
        looked = Scanner(index, [root]).scan()
        assert (looked.read, looked.problems) == (3, [])
        assert sorted(names(index)) == ["job-0", "job-1", "job-2"]

    def test_other_roots_than_before(self, index: Index, tmp_path: Path) -> None:
        whole(tmp_path / "one", 1)
        whole(tmp_path / "two", 2)
        scan(index, tmp_path / "one", tmp_path / "two")
        assert names(index) == ["job-2", "job-1"]
        scan(index, tmp_path / "two")
        assert names(index) == ["job-2"]

    def test_jobs_of_one_id_on_two_clusters(self, index: Index, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        write(one, "slurm-5", [*begun(1, name="old"), *ended(1)])
        write(two, "slurm-5", begun(2, name="new"))
        scan(index, one, two)
        assert names(index) == ["new", "old"]
        assert scan(index, one, two) == 0
        newest = queries.newest_directory(index.connection, "slurm-5")
        assert newest == f"{uris.of_local(two)}/jobs/slurm-5"
        row = queries.row_of(index.connection, "slurm-5", newest, 0.0)
        assert row is not None
        assert row["name"] == "new"
        owner = queries.trace(index.connection, "node0:100")
        assert owner is not None
        assert owner["directory"] == f"{uris.of_local(one)}/jobs/slurm-5"

        RunningJobs(index, []).refresh(time.time() + FORGOTTEN_S + 60)
        assert [row["state"] for row in page(index)["jobs"]] == ["FAILED", "SUCCEEDED"]
        index.update_columns(uris.of_local(one), "slurm-5", {"queue": "long"})
        assert [row["queue"] for row in page(index)["jobs"]][1] == "long" != page(index)["jobs"][0]["queue"]
        index.drop([(uris.of_local(one), "slurm-5")])
        assert names(index) == ["new"]

    def test_an_index_of_another_version_is_made_anew(self, tmp_path: Path, home: Path) -> None:
        whole(home, 1)
        with Index(tmp_path / "old") as old:
            assert old.claim()
            scan(old, home)
            old.connection.execute("DROP TABLE waste")
            old.connection.execute("PRAGMA user_version = 1")
        with Index(tmp_path / "old") as again:
            assert again.claim()
            assert names(again) == []
            scan(again, home)
            assert names(again) == ["job-1"]

    def test_imported_histories_are_jobs_like_others(self, index: Index, home: Path) -> None:
        write(home, f"local-{job_id(1)}", [*begun(1, application_type="TONY"), *ended(1)])
        scan(index, home)
        assert only(index)["id"] == f"local-{job_id(1)}"


class TestEnds:
    """Of jobs whose log does not tell them."""

    def living(self, index: Index, home: Path) -> RunningJobs:
        return RunningJobs(index, [ShownCluster(LocalEngine({"local_home": str(home)}), uris.of_local(home))])

    def test_a_killed_master(self, index: Index, home: Path) -> None:
        write(home, "local-1", begun(1))
        scan(index, home)
        log = home / "jobs" / "local-1"
        for path in (log / "events.jsonl", log):
            os.utime(path, (BEGAN + 5000, BEGAN + 5000))
        scan(index, home)
        assert self.living(index, home).refresh(time.time()) == []
        row = only(index)
        assert (row["state"], row["cause"]) == ("FAILED", "master")
        assert "does not say how it ended" in row["diagnostics"]
        assert row["wasted_gpu_hours"] > 0

    def test_one_that_no_engine_knows(self, index: Index, home: Path) -> None:
        write(home, job_id(1), begun(1))
        scan(index, home)
        now = time.time()
        RunningJobs(index, []).refresh(now)
        assert only(index)["state"] == "RUNNING"
        RunningJobs(index, []).refresh(now + FORGOTTEN_S + 60)
        assert only(index)["state"] == "FAILED"
        assert page(index)["jobs"][0]["duration_s"] >= 0

    @pytest.mark.parametrize("running", [False, True], ids=["waiting", "running"])
    def test_the_time_of_a_job_goes_on_also_while_it_waits(self, index: Index, home: Path, running: bool) -> None:
        started, *others = begun(1)
        write(home, job_id(1), [started, *(others if running else [])])
        scan(index, home)
        assert page(index)["jobs"][0]["duration_s"] == pytest.approx(time.time() - started.time, abs=60)

    def test_the_end_that_came_into_the_log_later(self, index: Index, home: Path) -> None:
        write(home, job_id(1), begun(1))
        scan(index, home)
        RunningJobs(index, []).refresh(time.time() + FORGOTTEN_S + 60)
        write(home, job_id(1), ended(1))
        os.utime(home / "jobs" / job_id(1), (BEGAN + 9, BEGAN + 9))
        scan(index, home)
        assert only(index)["state"] == "SUCCEEDED"


@pytest.mark.parametrize("kept", ['["-started",1,1%s]' % ("0" * 30), '["-started","\\ud800",1]', "[" * 5000])
def test_a_cursor_that_no_page_gave_is_refused(index: Index, kept: str) -> None:
    with pytest.raises(InvalidRequest, match="after is not a cursor"):
        page(index, after=base64.urlsafe_b64encode(kept.encode()).decode())


def test_no_process_has_a_number_of_many_digits(index: Index) -> None:
    assert queries.trace(index.connection, f"host:{'9' * 30}") is None


def test_a_log_that_never_ends_keeps_nobody_waiting(index: Index, home: Path) -> None:
    log = write(home, job_id(1), [])
    log.unlink()
    os.mkfifo(log)  # to which nobody writes
    whole(home, 2)
    scan(index, home)
    assert "job-2" in names(index)
    assert [row for row in page(index)["jobs"] if "is a pipe, must be a file" in row["diagnostics"]] != []


class TestRetention:
    def test_rows_go_and_stay_away(self, index: Index, home: Path) -> None:
        for number in range(4):
            whole(home, number)
        write(home, job_id(8), begun(8))
        scan(index, home)
        assert sweep(index, BEGAN + 3600 + 1500, None) == []
        assert names(index) == ["job-8", "job-3", "job-2"]
        assert scan(index, home) == 0
        assert names(index) == ["job-8", "job-3", "job-2"]
        assert len(list((home / "jobs").iterdir())) == 5

    def test_a_job_that_ended_at_no_time_did_not_end_long_ago(self, index: Index, home: Path) -> None:
        for number, time_ in enumerate(('"time":1e300', '"time":null')):
            log = whole(home, number)
            *before, end = log.read_text().splitlines(keepends=True)
            log.write_text("".join([*before, re.sub('"time":[0-9.]+', time_, end)]))
        bare = whole(home, 2)
        bare.write_text(re.sub('"time":[0-9.]+', '"time":1e300', bare.read_text()))
        scan(index, home)
        assert sweep(index, BEGAN + 3000, None) == []
        assert len(names(index)) == 3
        assert sweep(index, BEGAN + 9000, None) == []
        assert names(index) == ["job-2"]

    def test_files_go_when_that_is_asked_for(self, index: Index, home: Path) -> None:
        for number in range(3):
            whole(home, number)
        scan(index, home)
        assert sweep(index, BEGAN + 3600 + 1500, lambda _: str(os.getuid())) == []
        assert [path.name for path in (home / "jobs").iterdir()] == [job_id(2)]
        scan(index, home)
        assert names(index) == ["job-2"]

    def test_only_what_is_ours(self, index: Index, home: Path, tmp_path: Path) -> None:
        whole(home, 1)
        whole(tmp_path / "elsewhere", 2)
        (home / "jobs" / job_id(2)).symlink_to(tmp_path / "elsewhere" / "jobs" / job_id(2))
        scan(index, home)
        (told, _) = sweep(index, time.time(), lambda _: "somebody")
        assert "stays" in told
        assert (home / "jobs" / job_id(1) / "events.jsonl").exists()
        assert (tmp_path / "elsewhere" / "jobs" / job_id(2) / "events.jsonl").exists()

    def test_jobs_of_a_file_system_that_does_not_answer_wait(
        self, index: Index, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)  # then nobody knows where this one's NameNodes are
        away = "hdfs://nowhere/user/me/.howdah"
        for number in range(3):
            summary = JobSummary(id=job_id(number), name=f"away-{number}", state="SUCCEEDED", finished=BEGAN + number)
            index.put(
                away,
                [IndexedJob(job_id(number), f"{away}/jobs/{job_id(number)}", 1, ended_by_engine=True, summary=summary)],
            )
        whole(home, 5)
        Scanner(index, [uris.of_local(home), away]).scan()
        (told,) = sweep(index, time.time(), lambda _: str(os.getuid()))
        assert f"jobs of {away} are removed later" in told
        assert sorted(names(index)) == ["away-0", "away-1", "away-2"]
        assert not list((home / "jobs").iterdir())


class TestFile:
    def test_one_writes_and_the_next_takes_over(self, index: Index, home: Path) -> None:
        with Index(index.directory) as other:
            assert not other.claim()
            whole(home, 1)
            scan(index, home)
            assert names(other) == ["job-1"]
            index.close()
            assert other.claim()

    @pytest.mark.parametrize("damage", [b"", b"no database at all, but long enough" * 500])
    def test_a_damaged_one_is_made_anew(self, tmp_path: Path, home: Path, damage: bytes) -> None:
        directory = tmp_path / "i"
        directory.mkdir()
        (directory / "index.sqlite").write_bytes(damage)
        with Index(directory) as index:
            assert index.claim()
            whole(home, 1)
            scan(index, home)
            assert names(index) == ["job-1"]

    def test_one_of_another_version_is_made_anew(self, tmp_path: Path, home: Path) -> None:
        directory = tmp_path / "i"
        directory.mkdir()
        with sqlite3.connect(directory / "index.sqlite") as old:
            old.execute("CREATE TABLE job (x)")
            old.execute("PRAGMA user_version = 999")
        old.close()
        with Index(directory) as index:
            assert index.claim()
            assert page(index)["total"] == 0

    def test_no_other_user_may_read_the_index(self, index: Index) -> None:
        assert index.path.stat().st_mode & 0o077 == 0
        assert index.directory.stat().st_mode & 0o077 == 0

    def test_a_look_that_finds_nothing_new_changes_nothing(self, index: Index, home: Path) -> None:
        whole(home, 1)
        scan(index, home)
        before = index.version
        scan(index, home)
        assert index.version == before


class TestPages:
    @pytest.fixture
    def many(self, index: Index, home: Path) -> Index:
        for number in range(12):
            state = (State.SUCCEEDED, State.FAILED, State.CANCELLED)[number % 3]
            framework = ("pytorch", "tensorflow")[number % 2]
            whole(home, number, state, "Speicher ÜBERSCHRITTEN" if number == 4 else "", framework=framework, queue="q")
        write(home, job_id(20), begun(20, name="训练任务-百分之百", tags=("nightly",), labels={"team": "ears"}))
        scan(index, home)
        return index

    def test_the_newest_first(self, many: Index) -> None:
        found = page(many, limit="3")
        assert [row["id"] for row in found["jobs"]] == [job_id(20), job_id(11), job_id(10)]
        assert found["total"] == 13
        row = found["jobs"][1]
        assert (row["user"], row["queue"], row["tasks"], row["gpus"], row["gpu_hours"]) == ("user2", "q", 2, 2, 2.0)
        assert row["url"] == ""

    def test_filters(self, many: Index) -> None:
        assert page(many, user="user1")["total"] == 4
        assert page(many, user="user1,user2")["total"] == 9
        assert page(many, state="FAILED", framework="tensorflow")["total"] == 2
        assert names(many, name="JOB-1", sort="name") == ["job-1", "job-10", "job-11"]
        assert names(many, text="nightly ears") == ["训练任务-百分之百"]
        assert names(many, text="任务") == ["训练任务-百分之百"]
        assert names(many, text="überschritten") == ["job-4"]
        assert names(many, text="%") == names(many, text="_x") == []
        assert names(many, from_=str(BEGAN + 1000), to=str(BEGAN + 3000)) == ["job-2", "job-1"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("sort", "size"),
            ("limit", "-1"),
            ("limit", "ten"),
            ("from_", "nan"),
            ("to", "x"),
            ("after", "x"),
            ("after", "WzFd"),
        ],
    )
    def test_values_that_a_parameter_cannot_have(self, many: Index, name: str, value: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            page(many, **{name: value})
        assert refused.value.place == name.rstrip("_")

    def test_no_way_out_of_a_query(self, many: Index) -> None:
        for name in ("user", "queue", "name", "state", "framework", "text"):
            assert page(many, **{name: "' OR 1=1 --"})["total"] == 0

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
    @given(
        sort=st.sampled_from([f"{sign}{name}" for name in queries.SORTS for sign in ("", "-")]),
        limit=st.integers(1, 14),
    )
    def test_pages_together_are_the_list(self, many: Index, sort: str, limit: int) -> None:
        whole_list = [row["id"] for row in page(many, sort=sort)["jobs"]]
        found: list[str] = []
        after: str | None = ""
        for _ in range(20):
            part = page(many, sort=sort, limit=str(limit), **({"after": after} if after else {}))
            found += [row["id"] for row in part["jobs"]]
            after = part["next"]
            if after is None:
                break
        assert found == whole_list
        assert len(set(found)) == 13

    def test_jobs_that_come_in_between_shift_nothing(self, many: Index, home: Path) -> None:
        first = page(many, limit="5")
        whole(home, 30)
        scan(many, home)
        second = page(many, limit="50", after=first["next"])
        ids = [row["id"] for row in first["jobs"] + second["jobs"]]
        assert len(ids) == len(set(ids)) == 13

    def test_back_from_a_container_and_a_process(self, many: Index, home: Path) -> None:
        directory = f"{uris.of_local(home)}/jobs/{job_id(5)}"
        wanted = {"job": job_id(5), "task": "worker:1", "attempt": 1, "directory": directory}
        assert queries.trace(many.connection, container(5, 1)) == wanted
        assert queries.trace(many.connection, container(5, 1).replace("container_", "container_e17_")) == {
            "job": job_id(5),
            "task": "",
            "attempt": 0,
            "directory": directory,
        }
        assert queries.trace(many.connection, "node1:501") == wanted
        for nothing in ("node9:501", "container_1_0001_01_000001", "pod-x", "node0/gpu7", "", "a:b:c", "x" * 10_000):
            assert queries.trace(many.connection, nothing) is None
        for not_utf8 in ("caf\udce9", "caf\udce9:501", "caf\udce9/gpu7"):
            assert queries.trace(many.connection, not_utf8) is None


def test_a_home_that_is_not_there_is_told_of(index: Index, tmp_path: Path) -> None:
    assert Scanner(index, ["nowhere://x/y"]).scan().problems
    assert Scanner(index, [uris.of_local(tmp_path / "nix")]).scan().problems == []


def test_a_large_log_gives_others_their_turn(index: Index, home: Path) -> None:
    used = event_lines.to_line(Measured(BEGAN, TaskId("worker", 0), "x" * 1000))
    write(home, job_id(1), begun(1), more=used * 40_000)
    write(home, job_id(1), ended(1))
    scanner = Scanner(index, [uris.of_local(home)])
    states = []
    for _ in itertools.repeat(None, 4):
        scanner.scan()
        states.append(only(index)["state"])
    assert states[0] == "RUNNING"
    assert states[-1] == "SUCCEEDED"


def test_who_reads_while_it_is_made_anew_reads_the_new_one(index: Index) -> None:
    over = threading.Event()

    def read() -> int:
        while not over.is_set():
            assert index.version >= 0
        return index.version

    with ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read) for _ in range(3)]
        for _ in range(60):
            index.renew()
        with index.change():
            pass
        over.set()
        assert {reader.result(60) for reader in readers} == {index.version} == {2}
