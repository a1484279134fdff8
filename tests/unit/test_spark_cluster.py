"""Tests what the driver's side of clusters on Spark does without a Spark."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

from howdah.api.trace import trace
from howdah.cli.trace import _owner_lines
from howdah.client.engine_registry import settings_for
from howdah.engines.spark.allocator import place_in_spark
from howdah.errors import SpecError
from howdah.spark.feeding_task import Programs
from howdah.spec import Container, JobSpec, Outcome, Role, State, TaskId
from howdah.spec.events import JobStarted, Launched
from howdah.spec.fold import fold

SOURCE = Path(__file__).parents[2] / "distributions" / "tensorflowonspark" / "src"


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch) -> Any:
    return pyspark_stand_in.install(monkeypatch)


class Stream:
    """A streaming DataFrame, its writer and its query."""

    isStreaming = True  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        self.writeStream, self.isActive = self, False
        self.failure: Exception | None = None

    def foreachBatch(self, feed: Any) -> Stream:  # noqa: N802 - Spark's name
        self.feed = feed
        return self

    def start(self) -> Stream:
        self.isActive = True
        return self

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> Exception | None:
        return self.failure

    def awaitTermination(self, _timeout: float) -> bool:  # noqa: N802 - Spark's name
        return not self.isActive


def ended_cluster() -> Any:
    """Return a cluster whose programs have ended, as they do when they want no more rows."""
    from howdah.spark.cluster import Cluster

    cluster = Cluster(SimpleNamespace(), "job", SimpleNamespace(), Programs("name", b"key"), ["worker"])  # type: ignore[arg-type]
    outcome = Outcome(State.SUCCEEDED)
    cluster._view = SimpleNamespace(outcome=outcome, tasks={})  # type: ignore[assignment]
    return cluster


def test_a_job_goes_on_whose_notes_nobody_can_be_told(
    pyspark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, seen = ended_cluster(), []  # type: tuple[Any, list[Any]]

    def say(_text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def follow(*_: Any) -> Iterator[Any]:
        for count in (1, 2):
            yield SimpleNamespace(notes=["a node is silent"] * count, outcome=None)
            seen.append(cluster._problem)

    monkeypatch.setattr("howdah.spark.cluster.changes", lambda views, interval_s: views)
    cluster._say, cluster._jobs = say, SimpleNamespace(views=follow)
    directory = TemporaryDirectory(dir=tmp_path)
    cluster._follow(SimpleNamespace(stop=lambda: seen.append("stopped")), directory)
    assert seen == [None, None, "stopped"]
    assert not Path(directory.name).exists()
    assert cluster._problem is None


def test_tasks_may_appear_while_they_are_looked_at(pyspark: Any) -> None:
    cluster, tasks = ended_cluster(), {}  # type: tuple[Any, dict[int, Any]]

    def takes_part(_task: Any) -> bool:
        tasks[len(tasks)] = SimpleNamespace(id=len(tasks), state=State.RUNNING)
        return True

    tasks[0] = SimpleNamespace(id=0, state=State.RUNNING)
    cluster._view = SimpleNamespace(tasks=tasks, takes_part=takes_part)
    assert cluster.is_running
    assert len(cluster._tasks) > 1


class FedCluster:
    """A cluster of two tasks. Its gang is restarted in the calls whose numbers are given; it ends when a feed has ended
    in which it was not."""

    def __init__(self, restarted_in: set[int], rows: int = 8) -> None:
        self.starts, self.outcome, self.did = {"worker:0": 1, "worker:1": 1}, None, []  # type: tuple[dict[str, int], Any, list[str]]
        self._restarted_in, self._rows = restarted_in, rows

    def await_programs(self) -> bool:
        return self.outcome is None

    def train(self, _data: Any, starts: Any) -> int:
        assert starts == self.starts
        self._do("pass")
        return self._rows if len(self.did) < 20 else 0

    def end_feed_of(self, _starts: Any) -> None:
        if not self._do("end"):
            self.outcome = Outcome(State.SUCCEEDED)

    def _do(self, what: str) -> bool:
        self.did.append(what)
        is_restarted = len(self.did) in self._restarted_in
        if is_restarted:
            self.starts = {task: start + 1 for task, start in self.starts.items()}
        return is_restarted


@pytest.mark.parametrize(
    ("restarted_in", "did"),
    [
        (set(), ["pass", "pass", "end"]),
        ({1}, ["pass", "pass", "pass", "end"]),
        ({2}, ["pass", "pass", "pass", "pass", "end"]),
        ({3, 4}, ["pass", "pass", "end", "pass", "pass", "pass", "end"]),
    ],
)
def test_a_function_that_begins_again_gets_all_data_again(pyspark: Any, restarted_in: set[int], did: list[str]) -> None:
    from howdah.spark.distributor import Distributor

    cluster: Any = FedCluster(restarted_in)
    Distributor(2, epochs=2)._feed(cluster, None)  # type: ignore[arg-type]
    assert cluster.did == did


def test_data_comes_again_until_no_program_wants_more(pyspark: Any) -> None:
    from howdah.spark.distributor import Distributor

    for cluster, did in (
        (FedCluster({21}), ["pass"] * 20 + ["end", "pass", "end"]),
        (FedCluster(set(), 0), ["pass", "end"]),
    ):
        Distributor(2, epochs=None)._feed(cluster, None)  # type: ignore[arg-type]
        assert cluster.did == did


def test_the_end_of_the_feed_is_told_until_the_gang_is_restarted(pyspark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, told = ended_cluster(), []  # type: tuple[Any, list[tuple[str, int]]]
    module = sys.modules[type(cluster).__module__]

    def task(index: int) -> Any:
        ids = TaskId("worker", index)
        return SimpleNamespace(id=ids, tries=1, state=State.RUNNING, host=str(index), ports={module.FEED_PORT: 1})

    tasks = [task(0), task(1)]

    def end_feed(host: str, *_: Any) -> None:
        told.append((host, tasks[int(host)].tries))
        if told == [("0", 1), ("1", 1)]:
            tasks[0].tries = 2  # one alone
        if told[-1] == ("0", 2):
            tasks[1].tries = 2

    monkeypatch.setattr(module, "end_feed", end_feed)
    view = SimpleNamespace(outcome=None, tasks=dict(enumerate(tasks)), takes_part=lambda _: True)
    cluster._view = view
    cluster.end_feed_of(cluster.starts)
    assert told[:3] == [("0", 1), ("1", 1), ("0", 2)]
    assert cluster.outcome is None


def test_a_stream_ends_with_the_feed(pyspark: Any) -> None:
    cluster, stream = ended_cluster(), Stream()
    assert cluster.train(stream) is stream
    assert stream.isActive
    cluster.end_feed()
    deadline = time.monotonic() + 60
    while stream.isActive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not stream.isActive


def test_a_stream_ends_when_the_cluster_shuts_down(pyspark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, stream = ended_cluster(), Stream()
    monkeypatch.setattr(cluster, "end_feed", lambda: None)
    cluster.train(stream)
    assert cluster.shutdown().state is State.SUCCEEDED
    assert not stream.isActive


def test_a_stream_that_has_failed_is_told_when_the_cluster_shuts_down(
    pyspark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, streams = ended_cluster(), [Stream(), Stream(), Stream()]
    monkeypatch.setattr(cluster, "end_feed", lambda: None)
    for stream in streams:
        cluster.train(stream)
    streams[1].isActive, streams[1].failure = False, ValueError("row 7 is no number")
    with pytest.raises(ValueError, match="row 7 is no number"):
        cluster.shutdown()
    assert not any(stream.isActive for stream in streams)
    streams[1].failure = None
    assert cluster.shutdown().state is State.SUCCEEDED


def test_a_stream_that_took_the_place_of_a_failed_one_is_what_counts(
    pyspark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, failed, other = ended_cluster(), Stream(), Stream()
    monkeypatch.setattr(cluster, "end_feed", lambda: None)
    cluster.train(failed)
    failed.isActive, failed.failure = False, ValueError("row 7 is no number")
    cluster.train(other)
    assert cluster.shutdown().state is State.SUCCEEDED
    other.failure = ValueError("row 8 is no number")
    with pytest.raises(ValueError, match="row 8 is no number"):
        cluster.shutdown()


def test_a_last_batch_that_fails_is_told_when_the_cluster_shuts_down(
    pyspark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LastFails(Stream):
        def stop(self) -> None:
            super().stop()
            self.failure = ValueError("row 9 is no number")

    cluster = ended_cluster()
    monkeypatch.setattr(cluster, "end_feed", cluster._stop_streams)
    cluster.train(LastFails())
    with pytest.raises(ValueError, match="row 9 is no number"):
        cluster.shutdown()


@pytest.fixture
def tfcluster(pyspark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SOURCE))
    from tensorflowonspark import TFCluster

    yield TFCluster
    for name in [each for each in sys.modules if each.partition(".")[0] == "tensorflowonspark"]:
        del sys.modules[name]


@pytest.mark.parametrize("waits", [False, True])
def test_a_stream_for_tensorflowonspark_is_returned_and_ends(tfcluster: Any, waits: bool) -> None:
    cluster, stream = tfcluster.TFCluster(), Stream()
    cluster.job, cluster.input_mode, cluster.queues = ended_cluster(), tfcluster.InputMode.SPARK, ["input"]
    cluster.server = SimpleNamespace(done=False, stop=lambda: None)
    assert cluster.train(stream) is stream
    cluster.shutdown(stream if waits else None)
    assert not stream.isActive


def test_ports_are_those_of_executors(tfcluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    conf: dict[str, str] = {}
    application: Any = SimpleNamespace(getConf=lambda: conf)
    for variable in ("TENSORBOARD_PORT", "TENSORFLOW_PORT"):
        monkeypatch.delenv(variable, raising=False)
        assert tfcluster._port_of_executors(application, variable) == 0
        monkeypatch.setenv(variable, "6007")
        assert tfcluster._port_of_executors(application, variable) == 6007
        conf[f"spark.executorEnv.{variable}"] = "6006"
        assert tfcluster._port_of_executors(application, variable) == 6006
        for wrong in ("any", "65536", "tcp://10.0.0.5:6006"):
            conf[f"spark.executorEnv.{variable}"] = wrong
            with pytest.raises(ValueError, match=f"{variable} is '{wrong}', must be a port"):
                tfcluster._port_of_executors(application, variable)
        del conf[f"spark.executorEnv.{variable}"]
        monkeypatch.setenv(variable, "tcp://10.0.0.5:6006")  # as Kubernetes does for a service of this name
        assert tfcluster._port_of_executors(application, variable) == 0


@pytest.mark.parametrize("tensorboard", [False, True])
def test_the_port_of_tensorboard_is_read_for_it_alone(
    tfcluster: Any, monkeypatch: pytest.MonkeyPatch, tensorboard: bool
) -> None:
    class Begun(Exception):
        pass

    def begin(_server: Any) -> None:
        raise Begun

    monkeypatch.setattr(tfcluster.reservation.Server, "start", begin)
    monkeypatch.setattr(tfcluster, "_default_fs", lambda _sc: "file://")
    monkeypatch.delenv("TENSORFLOW_PORT", raising=False)
    application = SimpleNamespace(getConf=lambda: {"spark.executorEnv.TENSORBOARD_PORT": "any"})
    with pytest.raises(ValueError if tensorboard else Begun):
        tfcluster.run(application, print, None, 1, 0, tensorboard=tensorboard)


class Job:
    """A job that goes on, unless a node has failed."""

    job_id = "job"

    def __init__(self, failure: str = "") -> None:
        self.failure, self.is_cancelled = failure, False
        self.outcome = Outcome(State.FAILED) if failure else None

    @contextlib.contextmanager
    def cancelled_by_interrupt(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.cancel()
            raise

    def check(self) -> None:
        if self.failure:
            raise RuntimeError(self.failure)

    def cancel(self) -> None:
        self.is_cancelled = True


class Query:
    """A streaming query that goes on, unless it has failed."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure

    def awaitTermination(self, _timeout: float) -> bool:  # noqa: N802 - Spark's name
        if self.failure:
            raise RuntimeError(self.failure)
        return False


@pytest.mark.parametrize(
    ("job", "query", "said", "is_cancelled"),
    [
        (Job(), Query("the query has failed"), "the query has failed", True),
        (Job("worker:0 has failed"), Query("the query has failed"), "worker:0 has failed", False),
        (Job(), Query(), "job goes on after 0 s", True),
    ],
)
def test_a_cluster_ends_with_what_it_waits_for(
    tfcluster: Any, job: Job, query: Query, said: str, is_cancelled: bool
) -> None:
    cluster = tfcluster.TFCluster()
    cluster.job, cluster.server = job, SimpleNamespace(done=False, stop=lambda: None)
    with pytest.raises((RuntimeError, TimeoutError), match=said):
        cluster.shutdown(query, timeout=0)
    assert (job.is_cancelled, tfcluster.tf_status["error"]) == (is_cancelled, said)


def test_an_interrupt_cancels_a_cluster_that_shuts_down(tfcluster: Any) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    cluster, job = tfcluster.TFCluster(), Job()
    cluster.job, cluster.server = job, SimpleNamespace(done=False, stop=lambda: None)
    with pytest.raises(KeyboardInterrupt):
        cluster.shutdown(SimpleNamespace(awaitTermination=interrupted), grace_secs=10)
    assert job.is_cancelled


@pytest.mark.parametrize("failure", ["", "worker:0 has failed"])
def test_a_stream_stops_at_once_when_a_node_has_failed(tfcluster: Any, failure: str) -> None:
    """A stop that waits for batches would wait for ten intervals: each of them fails."""
    stops: list[bool] = []
    stream = SimpleNamespace(
        awaitTerminationOrTimeout=lambda _seconds: False,
        stop=lambda stopSparkContext, stopGraceFully: stops.append(stopGraceFully),  # noqa: N803 - Spark's names
    )
    cluster = tfcluster.TFCluster()
    cluster.job, cluster.server = Job(failure), SimpleNamespace(done=True)
    cluster._await_end_of(stream, timeout=-1)
    assert stops == [not failure]


@pytest.mark.parametrize(("timeout", "limit_s"), [(100, pytest.approx(107, abs=5)), (-1, None)])
def test_nobody_sleeps_while_nodes_end(tfcluster: Any, timeout: int, limit_s: Any) -> None:
    """What nodes do after the feed is waited for: the time of grace is no more than a limit."""
    limits: list[float | None] = []
    cluster, job = tfcluster.TFCluster(), Job()
    cluster.job, cluster.server = job, SimpleNamespace(stop=lambda: None)
    job.shutdown = limits.append  # type: ignore[attr-defined]
    begun = time.monotonic()
    cluster.shutdown(grace_secs=7, timeout=timeout)
    assert limits == [limit_s]
    assert time.monotonic() - begun < 5


def test_a_session_of_spark_connect_is_refused_in_one_line(pyspark: Any) -> None:
    from howdah.spark.cluster import Cluster, context_of

    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for refused in (lambda: context_of(session), lambda: Cluster.run(session, print)):
        with pytest.raises(SpecError) as caught:
            refused()
        assert str(caught.value).startswith("spark: is a session of Spark Connect, ")
        assert "run the program by spark-submit" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_no_function_is_refused_before_anything_starts(pyspark: Any) -> None:
    pyspark.SparkContext = Context
    from howdah.spark.cluster import Cluster

    with pytest.raises(SpecError, match=r"^function: is of the type NoneType, must be a function"):
        Cluster.run(Context(), None)  # type: ignore[arg-type]


def test_a_number_of_epochs_that_trains_nothing_is_refused(tfcluster: Any) -> None:
    from howdah.spark.distributor import Distributor

    with pytest.raises(SpecError, match=r"^epochs: is -1, must be at least 0$"):
        ended_cluster().train([1], epochs=-1)
    with pytest.raises(SpecError, match=r"^epochs: is -1, must be at least 0$"):
        Distributor(2, epochs=-1)
    cluster = tfcluster.TFCluster()
    cluster.input_mode, cluster.queues = tfcluster.InputMode.SPARK, ["input"]
    with pytest.raises(AssertionError, match="num_epochs is -1, must be at least 0"):
        cluster.train([1], num_epochs=-1)


class Context:
    """A SparkContext of an application that runs."""

    master, pythonExec = "spark://somewhere:7077", "python3"  # noqa: N815 - Spark's name

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {}


@pytest.mark.parametrize("local_mode", [False, True])
@pytest.mark.parametrize("train", [print, str(Path(__file__))])
def test_a_profile_is_one_of_the_configuration(
    pyspark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, local_mode: bool, train: Any
) -> None:
    pyspark.SparkContext = Context
    from howdah.spark.cluster import flags_of
    from howdah.spark.distributor import Distributor, TorchDistributor

    (tmp_path / "howdah").mkdir()
    (tmp_path / "howdah" / "config.yaml").write_text("profiles: {research: {spark.home: /mine}}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    flags = flags_of(Context(), "research")  # type: ignore[arg-type]
    assert settings_for(flags)["spark.home"] == "/mine"
    session: Any = SimpleNamespace(sparkContext=Context())
    for distributor in (
        Distributor(2, local_mode, profile="resaerch", spark=session),
        TorchDistributor(2, local_mode, use_gpu=False, profile="resaerch", spark=session),
    ):
        with pytest.raises(SpecError, match="profile: is 'resaerch', known are research"):
            distributor.run(train)


def test_named_arguments_of_a_program_are_refused(pyspark: Any) -> None:
    """As pyspark's TorchDistributor does."""
    from howdah.spark.distributor import TorchDistributor

    with pytest.raises(ValueError, match="a program has no named arguments: lr, epochs"):
        TorchDistributor(2, use_gpu=False).run(str(Path(__file__)), lr=0.1, epochs=3)


def test_what_the_application_has_is_no_key(pyspark: Any) -> None:
    from howdah.spark.distributor import Distributor

    with pytest.raises(SpecError, match=r"conf: is given by the application \(SparkSession\.builder\.config\)"):
        Distributor(2, conf={"spark.task.cpus": 2})
    with pytest.raises(SpecError, match=r"conf: means nothing beside the driver"):
        Distributor(2, local_mode=True, conf={"spark.task.cpus": 2})


def test_a_container_is_traced_to_its_place_in_spark() -> None:
    facts = {"application": "app-1", "stage": "3", "partition": "0", "executor": "2", "node": "n1", "gpus": ""}
    container = Container("c-1", "n1", "worker", engine_facts=place_in_spark(facts))
    job, task = JobSpec({"worker": Role("t")}), TaskId("worker", 0)
    view = fold([JobStarted(1.0, "job-1", "spark", "me", job), Launched(2.0, task, 1, container)])
    found = trace(view, "c-1")
    assert found is not None
    assert found["engine_facts"] == {"application": "app-1", "stage": "3", "partition": "0", "executor": "2"}
    lines = [*_owner_lines({**found})]
    assert "  spark: application app-1, stage 3, partition 0, executor 2" in lines
    beside_driver = {**dict.fromkeys(facts, ""), "partition": "0", "executor": "driver"}
    assert place_in_spark(beside_driver) == {"partition": "0", "executor": "driver"}
