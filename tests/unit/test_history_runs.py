"""Tests the list of jobs as a table of runs: metrics, hyperparameters, tags, what jobs used, and all of it as CSV."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_jobs import BEGAN, begun, ended, job_id, write

from howdah.errors import InvalidRequest
from howdah.history import csv_tables, queries, run_facts
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index
from howdah.history.job_summary import JobSummary
from howdah.history.source import differences
from howdah.history.usage import usage
from howdah.spec import JobSpec, Resources, Role, State, TaskId, event_lines, uris
from howdah.spec.codec import encode
from howdah.spec.events import Event, JobStarted, Measured

FIRST, SECOND = TaskId("worker", 0), TaskId("worker", 1)


def points(name: str, *values: float | None, task: TaskId = FIRST) -> list[Event]:
    return [Measured(BEGAN + step, task, name, value, step) for step, value in enumerate(values)]


def summary_of(*events: Event) -> JobSummary:
    made = JobSummary()
    made.feed(event_lines.to_line(event).rstrip().encode() for event in events)
    return made


def params_of(command: str | list[str], **job: Any) -> dict[str, str]:
    return run_facts.hyperparameters(encode(JobSpec({"worker": Role(command)}, **job)))  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path: Path, home: Path) -> Iterator[Index]:
    """Three runs of a sweep, and a job that reports nothing."""
    for number, (rate, losses) in enumerate((("0.1", (0.9, 0.2, 0.3)), ("1e-3", (0.9, 0.8)), ("3", (4.0, 0.05)))):
        job: dict[str, Any] = {"tags": ("sweep", f"n{number}"), "env": {"RATE": rate, "API_KEY": "s3cret"}}
        write(home, job_id(number), [*begun(number, **job), *points("train/loss, all", *losses), *ended(number)])
    write(home, job_id(3), [*begun(3, queue="prod"), *ended(3, State.FAILED, "=1+1")])
    with Index(tmp_path / "index") as made:
        assert made.claim()
        Scanner(made, [uris.of_local(home)]).scan()
        yield made


def page(index: Index, **query: str) -> dict[str, Any]:
    return queries.page(index.connection, query, time.time())


def ids(index: Index, **query: str) -> list[str]:
    return [row["id"][-1] for row in page(index, **query)["jobs"]]


class TestParameters:
    @pytest.mark.parametrize(
        "job",
        [
            {"command": "spark-submit --conf spark.hadoop.fs.s3a.secret.key=hunter2 --lr 1"},
            {"command": "train.sh --env HF_TOKEN=hunter2"},
            {"command": ["bash", "-c", "LR=1 TOKEN=hunter2 python t.py"]},
            {"command": "python t.py", "env": {"EXTRA_ARGS": "--password hunter2"}},
            {"command": "python t.py --url http://me:hunter2@host/"},
        ],
    )
    def test_hold_no_secret_under_another_name(self, job: dict[str, Any]) -> None:
        assert "hunter2" not in str(params_of(**job))

    @pytest.mark.parametrize(
        "command",
        ["t.py --fp16 \\\n --lr 0.1", "t.py --lr 0.1 --fp16 2>&1 | tee log", "t.py --lr 0.1 --fp16 && echo done"],
    )
    def test_an_option_alone_is_true_whatever_follows(self, command: str) -> None:
        assert params_of(command) == {"fp16": "true", "lr": "0.1"}


class TestMetrics:
    def test_the_last_the_least_and_the_greatest_of_all_tasks(self) -> None:
        found = summary_of(*points("loss", 0.5, 0.25), *points("loss", 0.75, None, task=SECOND))
        assert found.metrics == {"loss": [0.75, 0.25, 0.75]}

    def test_goes_on_from_what_was_kept(self) -> None:
        again = JobSummary.load(summary_of(*begun(1), *points("loss", 3.0, 2.0)).dump())
        again.feed([event_lines.to_line(event).rstrip().encode() for event in points("loss", 2.5)])
        assert again.metrics == {"loss": [2.5, 2.0, 3.0]}

    def test_names_in_any_language_and_no_more_than_the_index_keeps(self) -> None:
        many = [event for number in range(99) for event in points(f"m{number}", 1.0)]
        found = summary_of(*points('损失 "\\', 1.0), *points("x" * 101, 1.0), *many)
        assert next(iter(found.metrics)) == '损失 "\\'
        assert len(found.metrics) == run_facts.MAX_NAMES
        assert "x" * 101 not in found.metrics

    @pytest.mark.parametrize("value", [b"1e999", b"null", b'"1"', b"1.2.3", b"-"])
    def test_what_is_no_number(self, value: bytes) -> None:
        found = JobSummary()
        task = b'"task":{"role":"worker","index":0}'
        found.feed([b'{"kind":"Measured","time":1.0,%b,"name":"loss","value":%b}' % (task, value)])
        assert found.metrics == {}


class TestHyperparameters:
    def test_of_commands_as_people_write_them(self) -> None:
        command = (
            "cd x && torchrun --nproc=2 train.py --lr 0.1 --amp --wd=1e-4 -bs 32 optimizer.name='adam w' --shift -1"
        )
        assert params_of(f"{command} | tee --append log") == {
            **{"nproc": "2", "lr": "0.1", "amp": "true", "wd": "1e-4", "bs": "32", "optimizer.name": "adam w"},
            "shift": "-1",
        }
        assert params_of(["python", "train.py", "--name", "a b", "--last"]) == {"name": "a b", "last": "true"}
        assert params_of("python -m train") == {}

    def test_variables_of_the_job_and_secrets(self) -> None:
        found = params_of("train --api-key abc --url http://me:pw@host/", env={"RATE": "0.5", "DB_PASSWORD": "x"})
        assert found == {"api-key": "***", "url": "http://***@host/", "RATE": "0.5", "DB_PASSWORD": "***"}

    def test_no_more_than_the_index_keeps(self) -> None:
        found = params_of(" ".join(f"--p{number} {'v' * 250}" for number in range(99)))
        assert len(found) == run_facts.MAX_NAMES
        assert {len(value) for value in found.values()} == {run_facts.MAX_VALUE}

    def test_of_the_role_that_trains(self) -> None:
        roles = {"ps": Role("serve --port 1"), "chief": Role("train --lr 2")}
        found = summary_of(JobStarted(BEGAN, job_id(1), "yarn", "ann", JobSpec(roles)))
        assert found.params == {"lr": "2"}


class TestColumns:
    def test_rows_have_what_is_asked_for(self, index: Index) -> None:
        found = page(index, sort="started", columns="metric:train/loss%2C all,param:RATE,id")
        assert found["jobs"][0]["metrics"] == {"train/loss, all": {"last": 0.3, "min": 0.2, "max": 0.9}}
        assert found["jobs"][0]["params"] == {"RATE": "0.1"}
        assert found["jobs"][0]["tags"] == ["n0", "sweep"]
        assert found["jobs"][3]["metrics"] == found["jobs"][3]["params"] == {}
        assert found["names"] == {"metrics": ["train/loss, all"], "params": ["API_KEY", "RATE"]}
        assert page(index)["jobs"][1]["metrics"] == {}
        assert page(index, columns="all")["jobs"][1]["params"] == {"RATE": "3", "API_KEY": "***"}

    @pytest.mark.parametrize(
        ("sort", "wanted"),
        [
            ("metric:train/loss, all:last", "2013"),
            ("-metric:train/loss, all:last", "1023"),
            ("-metric:train/loss, all:max", "2013"),
            ("param:RATE", "1023"),
            ("-param:RATE", "2013"),
        ],
    )
    def test_sorted_by_a_metric_or_hyperparameter(self, index: Index, sort: str, wanted: str) -> None:
        assert "".join(ids(index, sort=sort)) == wanted
        after, found = "", ""
        for _ in range(4):
            part = page(index, sort=sort, limit="1", after=after)
            found, after = found + part["jobs"][0]["id"][-1], part["next"] or ""
        assert (found, after) == (wanted, "")

    def test_filtered_by_tag(self, index: Index) -> None:
        assert ids(index, tag="sweep", sort="started") == ["0", "1", "2"]
        assert ids(index, tag="n1,n2", sort="started") == ["1", "2"]
        assert ids(index, tag="swee") == []

    def test_a_job_that_is_gone_leaves_nothing(self, index: Index, home: Path) -> None:
        for number in range(4):
            (home / "jobs" / job_id(number) / "events.jsonl").unlink()
            (home / "jobs" / job_id(number)).rmdir()
        Scanner(index, [uris.of_local(home)]).scan()
        for table in ("metric", "parameter", "tag"):
            assert index.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


class TestUsage:
    def of(self, index: Index, **query: str) -> dict[str, tuple[int, float]]:
        return {row["group"]: (row["jobs"], row["gpu_hours"]) for row in usage(index.connection, query)["users"]}

    def test_by_user(self, index: Index) -> None:
        found = usage(index.connection, {})
        assert [(row["user"], row["jobs"], row["gpu_hours"]) for row in found["users"]] == [
            *(("user0", 2, 4.0), ("user1", 1, 2.0), ("user2", 1, 2.0)),
        ]
        assert [row["by_cause"] for row in found["users"]] == [{"memory": 2.0}, {}, {}]
        total = {name: found["total"][name] for name in ("jobs", "gpu_hours", "cpu_hours", "memory_gib_hours")}
        assert total == {"jobs": 4, "gpu_hours": 8.0, "cpu_hours": 8.0, "memory_gib_hours": 8.0}
        assert found["total"]["by_cause"] == {"memory": 2.0}
        assert [row["user"] for row in usage(index.connection, {"to": str(BEGAN + 1)})["users"]] == ["user0"]
        assert usage(index.connection, {"to": "1"})["total"]["jobs"] == 0

    def test_by_queue_tag_and_day(self, index: Index) -> None:
        assert self.of(index, by="queue") == {"": (3, 6.0), "prod": (1, 2.0)}
        assert self.of(index, by="tag") == {"sweep": (3, 6.0), **dict.fromkeys(("", "n0", "n1", "n2"), (1, 2.0))}
        assert usage(index.connection, {"by": "tag"})["total"]["jobs"] == 4
        assert self.of(index, by="day") == {time.strftime("%Y-%m-%d", time.localtime(BEGAN)): (4, 8.0)}
        assert self.of(index, by="queue", user="user1") == {"": (1, 2.0)}
        with pytest.raises(InvalidRequest):
            usage(index.connection, {"by": "moon"})

    def test_what_tasks_hold_is_what_their_role_asks_for(self) -> None:
        spec = JobSpec({"worker": Role("x", 2, Resources(memory_mib=3072, vcores=4))})
        events = [event for event in (*begun(1), *ended(1)) if not isinstance(event, JobStarted)]
        found = summary_of(JobStarted(BEGAN + 1000, job_id(1), "yarn", "ann", spec), *events)
        assert (found.cpu_hours, found.memory_gib_hours, found.gpu_hours) == (8.0, 6.0, 0.0)


class TestCsv:
    def rows(self, index: Index, columns: str = "") -> list[list[str]]:
        found = queries.page(index.connection, {"columns": columns, "sort": "started"}, time.time())["jobs"]
        return list(csv.reader(io.StringIO(csv_tables.jobs_table([{**row, "cluster": ""} for row in found], columns))))

    def test_columns_that_are_named(self, index: Index) -> None:
        head, *rows = self.rows(index, "id,started,tags,metric:train/loss%2C all:min,param:RATE")
        assert head == ["id", "started", "tags", "metric:train/loss, all:min", "param:RATE"]
        assert rows[0] == [job_id(0), "2023-11-14T22:13:20+00:00", "n0 sweep", "0.2", "0.1"]
        assert rows[3][2:] == ["", "", ""]
        with pytest.raises(InvalidRequest):
            self.rows(index, "id,moon")

    def test_all_columns_and_no_formula(self, index: Index) -> None:
        head, *rows = self.rows(index)
        assert head == list(csv_tables.JOB_COLUMNS)
        assert rows[3][head.index("diagnostics")] == "'=1+1"

    @pytest.mark.parametrize("text", ["=1", "+x", "@SUM(A1)", "-2+3", "\t=1", "\r=1"])
    def test_a_formula_is_text(self, text: str) -> None:
        row = {"id": text, "params": {"x": "-0.5"}, "metrics": {"m": {"last": -1.5}}}
        found = csv_tables.jobs_table([row], "id,param:x,metric:m")
        assert next(iter(list(csv.reader(io.StringIO(found, newline="")))[1:])) == [f"'{text}", "-0.5", "-1.5"]

    def test_what_was_used(self, index: Index) -> None:
        rows = list(csv.reader(io.StringIO(csv_tables.usage_table(usage(index.connection, {"by": "queue"})))))
        assert rows[0] == ["queue", "jobs", "gpu_hours", "cpu_hours", "memory_gib_hours", "wasted_gpu_hours"]
        assert rows[2] == ["prod", "1", "2.0", "2.0", "2.0", "2.0"]
        assert rows[-1][:2] == ["total", "4"]


def test_differences_of_several_jobs() -> None:
    values = [{"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 1}, "d": [1]}]
    assert list(differences(values)) == [
        {"path": "b.c", "a": 1, "b": 2, "values": [1, 2, 1]},
        {"path": "d", "a": None, "b": None, "values": [None, None, [1]]},
    ]
    assert [row["path"] for row in differences(values, equal=True)] == ["a", "b.c", "d"]


def test_the_run_before_is_not_the_same_job_of_another_cluster(tmp_path: Path) -> None:
    for home, at in (("a", BEGAN + 50), ("b", BEGAN + 90)):
        write(tmp_path / home, job_id(2), [*begun(2, name="same", at=at), *ended(2)])
    with Index(tmp_path / "index") as index:
        assert index.claim()
        Scanner(index, [uris.of_local(tmp_path / home) for home in ("a", "b")]).scan()
        assert queries.previous_run(index.connection, job_id(2)) == ""
        write(tmp_path / "a", job_id(5), [*begun(5, name="same", at=BEGAN + 1), *ended(5)])
        Scanner(index, [uris.of_local(tmp_path / home) for home in ("a", "b")]).scan()
        assert queries.previous_run(index.connection, job_id(2)) == job_id(5)
