"""Tests how nodes of the module tensorflowonspark register, and which GPUs they get."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

from howdah.engines.spark.container_task import write_files
from howdah.executor.io.program_api_files import _INIT, _LINKED, _PACKAGE
from howdah.program.task_identity import Peer
from howdah.spark.columns import to_batches, to_rows
from howdah.spark.feed import DataFeed
from howdah.spark.feed_messages import socket_name
from howdah.spark.feeding_task import Programs, infer_partition
from howdah.spark.node_context import FEED_PORT
from howdah.spec import State

KEY = b"k" * 32
SOURCE = Path(__file__).parents[2] / "distributions" / "tensorflowonspark" / "src"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SOURCE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    monkeypatch.setenv("TFOS_SERVER_KEY", "11" * 32)
    for name in ("TENSORFLOW_PORT", "TF_CONFIG", "CUDA_VISIBLE_DEVICES", "SPARK_EXECUTOR_POD_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "tensorflowonspark"]:
        del sys.modules[name]


class Gpus:
    """GPUs of a machine: `free` is how many nvidia-smi finds; `asked` has what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tensorflowonspark import TFSparkNode, gpu_info

        self.free, self.asked = 0, []  # type: tuple[int, list[tuple[int, int]]]
        monkeypatch.setattr(gpu_info, "is_gpu_available", lambda: self.free > 0)
        monkeypatch.setattr(gpu_info, "get_gpus", self._get)
        monkeypatch.setattr(TFSparkNode, "_gpus_of_spark", list)  # there is no pyspark

    def _get(self, count: int, index: int, format: str) -> list[str]:
        self.asked.append((count, index))
        return [str(number) for number in range(self.free)][index * count :][:count]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    return Gpus(monkeypatch)


def test_a_node_registers_and_runs(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import TFSparkNode, reservation

    monkeypatch.setenv("TENSORFLOW_PORT", "2222")
    server = reservation.Server(2)
    meta: dict[str, Any] = {"id": 7, "cluster_template": {"chief": [0], "worker": [1]}, "server_addr": server.start()}
    seen = []
    try:
        other = reservation.Client(meta["server_addr"])
        other.register({"executor_id": 0, "host": "somewhere", "job_name": "chief", "task_index": 0, "port": 1})
        other.close()
        run = TFSparkNode.run(
            lambda args, ctx: seen.append((args, ctx)),
            {"x": 1},
            {**meta, "default_fs": "file://", "working_dir": "/w"},
            False,
            None,
            ["input"],
            False,
        )
        for _ in range(2):  # as Spark tries a task again
            run(iter([1]))
        assert server.reservations is not None
        assert len(server.reservations.get()) == 2
    finally:
        server.stop()
    (args, ctx), _ = seen
    assert (args, ctx.job_name, ctx.task_index, ctx.executor_id, ctx.num_workers) == ({"x": 1}, "worker", 0, 1, 2)
    assert ctx.cluster_spec["chief"] == ["somewhere:1"]
    assert json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}
    ctx.mgr.get_queue("input").put(3)
    assert ctx.mgr.get_queue("input").get() == 3
    with pytest.raises(Exception, match=r"only TFCluster\.run feeds nodes"):
        TFSparkNode.run(lambda args, ctx: None, {}, meta, False, None, ["input"], True)


def test_the_port_of_a_node_is_held_until_it_is_released(gpus: Gpus) -> None:
    from tensorflowonspark import TFSparkNode, reservation

    server = reservation.Server(1)
    meta = {"id": 7, "cluster_template": {"worker": [0]}, "server_addr": server.start(), "release_port": False}
    held = []

    def look(_: Any, ctx: Any) -> None:
        held.append(ctx.tmp_socket.getsockname()[1] == int(ctx.cluster_spec["worker"][0].rpartition(":")[2]))
        ctx.release_port()
        held.append(ctx.tmp_socket is None)

    try:
        TFSparkNode.run(look, {}, {**meta, "default_fs": "file://", "working_dir": "."}, False, None, [], False)([0])
    finally:
        server.stop()
    assert held == [True, True]


@pytest.mark.parametrize(
    ("tf_args", "given", "free", "visible"),
    [
        (Namespace(), [], 0, ""),
        (Namespace(), [], 4, "1"),
        (Namespace(num_gpus=2), [], 4, "2,3"),
        (Namespace(num_gpus=0), [], 4, ""),
        ({"num_gpus": 2}, [], 4, "2,3"),
        (["--num_gpus", "2"], [], 4, "1"),
        (Namespace(), ["6", "7"], 4, "6,7"),
        (Namespace(num_gpus=1), ["6", "7"], 4, "6"),
    ],
)
def test_gpus_are_those_of_spark_or_else_free_ones(
    gpus: Gpus, tf_args: Any, given: list[str], free: int, visible: str
) -> None:
    from tensorflowonspark import node_environment

    gpus.free = free
    node_environment.assign_gpus(tf_args, given, 1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible


def test_gpus_that_are_missing_are_told(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import node_environment

    with pytest.raises(Exception, match="num_gpus is 1, and there are 0 GPUs for this node"):
        node_environment.assign_gpus(Namespace(num_gpus=1), [], 0)
    node_environment.assign_gpus(Namespace(num_gpus=1), [], 0, required=False)
    gpus.free = 4
    monkeypatch.setenv("SPARK_EXECUTOR_POD_IP", "10.0.0.1")
    with pytest.raises(Exception, match="num_gpus is 1, and there are 0 GPUs for this node"):
        node_environment.assign_gpus(Namespace(num_gpus=1), [], 0)
    assert gpus.asked == []


class Context:
    """The node of howdah's on which a function runs: one of two on a host, beside another host and a ps."""

    cluster = "name"
    roles = ("ps", "chief", "worker", "worker")
    hosts = ("a", "b", "a", "a")

    def __init__(self, number: int, ports: Mapping[str, int] | None = None) -> None:
        self.number, self.peers, self.ports = number, self, ports or {}
        self.feeds: list[str] = []

    def __len__(self) -> int:
        return len(self.roles)

    def feed(self, queue: str) -> str:
        self.feeds.append(queue)
        return "the feed"

    def of(self, role: str) -> list[Peer]:
        numbers = [number for number, each in enumerate(self.roles) if each == role]
        return [
            Peer(f"{role}:{index}", role, index, number, self.hosts[number], {"main": 2222 + number, **self.ports})
            for index, number in enumerate(numbers)
        ]

    @property
    def role(self) -> str:
        return self.roles[self.number]

    @property
    def index(self) -> int:
        return self.roles[: self.number].count(self.role)


@pytest.mark.parametrize(
    ("number", "given", "visible"),
    [(0, "", ""), (1, "", "0"), (2, "", "0"), (3, "", "1"), (3, "5", "5"), (0, "5", "5")],
)
def test_nodes_of_one_host_take_different_gpus(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch, number: int, given: str, visible: str
) -> None:
    from tensorflowonspark import TFSparkNode

    gpus.free = 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    seen = []
    TFSparkNode.run_on_node(Context(number), lambda _, ctx: seen.append(ctx), {}, Context.roles, "file://", True)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible
    assert seen[0].executor_id == number
    assert json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"] == ["a:2224", "a:2225"]


class Apart(Context):
    """One of three nodes, each on a host of its own."""

    roles = ("chief", "worker", "worker")
    hosts = ("a", "b", "c")


@pytest.mark.parametrize("of_node", ["", "2300"])
def test_all_nodes_have_the_port_that_is_fixed(gpus: Gpus, monkeypatch: pytest.MonkeyPatch, of_node: str) -> None:
    from tensorflowonspark import TFSparkNode

    monkeypatch.setenv("TENSORFLOW_PORT", of_node)
    seen: list[Any] = []
    TFSparkNode.run_on_node(Apart(1), lambda _, ctx: seen.append(ctx), {}, Apart.roles, "file://", True, 2300)
    spec = {"chief": ["a:2300"], "worker": ["b:2300", "c:2300"]}
    assert (seen[0].cluster_spec, json.loads(os.environ["TF_CONFIG"])["cluster"]) == (spec, spec)


def test_a_service_of_kubernetes_is_no_port(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import TFSparkNode, reservation

    monkeypatch.setenv("TENSORFLOW_PORT", "tcp://10.0.0.5:8500")
    seen: list[Any] = []
    TFSparkNode.run_on_node(Apart(1), lambda _, ctx: seen.append(ctx), {}, Apart.roles, "file://", True, 2300)
    assert seen[0].cluster_spec["chief"] == ["a:2300"]
    server = reservation.Server(1)
    meta = {"id": 7, "cluster_template": {"worker": [0]}, "server_addr": server.start()}
    meta |= {"default_fs": "file://", "working_dir": "."}
    try:
        TFSparkNode.run(lambda _, ctx: seen.append(ctx), {}, meta, False, None, [], False)(iter([0]))
    finally:
        server.stop()
    assert int(seen[1].cluster_spec["worker"][0].rpartition(":")[2]) > 0


@pytest.mark.parametrize(
    ("node", "of_node", "said"),
    [
        (Context(2), "", "two nodes would have the address a:2300: with TENSORFLOW_PORT each node needs a host"),
        (
            Apart(1),
            "2301",
            "TENSORFLOW_PORT is 2301 here and 2300 in the driver: set spark.executorEnv.TENSORFLOW_PORT",
        ),
    ],
)
def test_ports_that_cannot_be_are_told(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch, node: Context, of_node: str, said: str
) -> None:
    from tensorflowonspark import TFSparkNode

    monkeypatch.setenv("TENSORFLOW_PORT", of_node)
    with pytest.raises(Exception, match=said):
        TFSparkNode.run_on_node(node, lambda *_: None, {}, node.roles, "file://", True, 2300)


@pytest.mark.parametrize(("ports", "feeds"), [({}, []), ({FEED_PORT: 1}, [""])])
def test_rows_can_come_before_the_function_asks_for_them(
    gpus: Gpus, ports: Mapping[str, int], feeds: list[str]
) -> None:
    from tensorflowonspark import TFSparkNode

    context, seen = Context(1, ports), []  # type: tuple[Context, list[list[str]]]
    TFSparkNode.run_on_node(context, lambda *_: seen.append(list(context.feeds)), {}, Context.roles, "file://", True)
    assert seen == [feeds]


@pytest.mark.parametrize("ends", ["file", "directory"])
def test_the_task_of_an_evaluators_grace_is_no_node(tmp_path: Path, ends: str) -> None:
    from tensorflowonspark import TFSparkNode

    over = tmp_path / "grace" / "over"
    over.parent.mkdir()
    context: Any = SimpleNamespace(role=TFSparkNode.GRACE)
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(TFSparkNode.run_on_node, context, print, {}, ["chief"], "file://", True, 0, str(over))
        with pytest.raises(TimeoutError):
            waits.result(0.1)
        if ends == "file":
            over.touch()
        else:
            over.parent.rmdir()  # the driver's side has ended
        waits.result(10)


@pytest.mark.parametrize(("chief_s", "evaluator_s", "grace_s", "took_s"), [(0.5, 1.5, 9, 1.5), (0.5, 99, 1, 1.5)])
def test_an_evaluator_has_its_grace_after_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chief_s: float, evaluator_s: float, grace_s: float, took_s: float
) -> None:
    pyspark_stand_in.install(monkeypatch)
    from tensorflowonspark import TFCluster

    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.insert(0, now[0] + seconds))
    monkeypatch.setattr(TFCluster, "time", clock)
    ends = {"chief": chief_s, "evaluator": evaluator_s, "ps": 999.0}

    def task(role: str, _index: int) -> Any:
        return SimpleNamespace(state=State.SUCCEEDED if now[0] >= ends[role] else State.RUNNING)

    cluster = TFCluster.TFCluster()
    cluster.job = SimpleNamespace(outcome=None, task=task)  # type: ignore[assignment]
    cluster.cluster_info = [{"job_name": role, "task_index": 0} for role in ends]
    cluster._await_evaluator(tmp_path / "over", grace_s, 1000.0)
    assert now[0] == pytest.approx(took_s, abs=0.3)
    assert (tmp_path / "over").exists()


class Alone(Context):
    """One of two nodes that know nothing of each other."""

    roles = ("worker", "worker")
    hosts = ("a", "a")

    def __len__(self) -> int:
        return 1

    def of(self, role: str) -> list[Peer]:
        return [replace(super().of(role)[self.index], index=0)]


@pytest.mark.parametrize(("free", "visible"), [(0, ""), (2, "1")])
def test_a_node_of_tfparallel_may_know_of_no_other_one(gpus: Gpus, free: int, visible: str) -> None:
    from tensorflowonspark import TFSparkNode

    gpus.free = free
    seen: list[Any] = []
    TFSparkNode.run_on_node(
        Alone(1), lambda _, ctx: seen.append(ctx), {"num_gpus": 1}, Alone.roles, "file://", in_cluster=False
    )
    assert (seen[0].worker_num, seen[0].num_workers) == (1, 2)
    assert (os.environ["CUDA_VISIBLE_DEVICES"], "TF_CONFIG" in os.environ) == (visible, False)


def test_a_node_knows_that_its_executor_is_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_POD_IP", "10.0.0.1")
    monkeypatch.setenv("SPARK_USER", "somebody")
    order = {"key": "11", "archive": "", "variables": {"HOWDAH_MASTER": "http://127.0.0.1:9"}}
    variables = write_files(tmp_path, "container", order, {"gpus": ""})
    assert variables["SPARK_EXECUTOR_POD_IP"] == "10.0.0.1"
    assert "SPARK_USER" not in variables


@pytest.fixture
def rows() -> Iterator[DataFeed]:
    name = os.urandom(8).hex()
    with DataFeed(socket_name(name, "worker:0"), KEY) as feed:
        feed.cluster = name  # type: ignore[attr-defined]
        yield feed


@pytest.mark.parametrize("qname_out", ["output", "results"])
def test_queues_of_a_node_are_its_feed(rows: DataFeed, qname_out: str) -> None:
    from tensorflowonspark.TFManager import Empty, NodeManager
    from tensorflowonspark.TFNode import DataFeed as Feed

    mgr = NodeManager(lambda _qname: rows)
    Feed(mgr, False, "input", qname_out)
    given, results = mgr.get_queue("input"), mgr.get_queue(qname_out)
    with pytest.raises(Empty):
        given.get(block=False)
    with pytest.raises(Empty):
        given.get(timeout=0.01)
    programs = Programs(rows.cluster, KEY, connect_s=10.0)  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(lambda: [*infer_partition(programs, 0, to_batches([1, 2, 3], 2))])
        for number in range(1, 4):
            assert given.get(timeout=60) == number
            given.task_done()
            results.put(number * number)
        assert [row for batch in answers.result(60) for row in to_rows(batch)] == [1, 4, 9]
    rows.terminate()
    assert given.get() is None


def test_queues_that_make_no_sense_say_what_does() -> None:
    from tensorflowonspark.TFManager import Empty, NodeManager

    mgr = NodeManager(lambda _qname: None)
    with pytest.raises(
        Exception, match=r"^nothing is put into the queue input on a node: TFCluster.train brings rows$"
    ):
        mgr.get_queue("input").put(1)
    with pytest.raises(Exception, match=r"^nothing is taken from the queue output: rows come from the queue input$"):
        mgr.get_queue("output").get()
    with pytest.raises(Exception, match=r"^this is what is wrong$"):
        mgr.get_queue("error").put("this is what is wrong")
    with pytest.raises(Empty):
        mgr.get_queue("control").get(timeout=0.01)


def test_a_shutdown_of_nodes_ends_the_queues_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark_stand_in.install(monkeypatch)
    from tensorflowonspark import TFSparkNode

    told: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    programs = Programs("name", KEY, [("127.0.0.1", port)], connect_s=10.0)
    with DataFeed("elsewhere/" + os.urandom(8).hex(), KEY, "127.0.0.1", port, on_end=told.append) as feed:
        assert TFSparkNode.shutdown([{"programs": programs}], queues=["extra"])(iter([])) == [True]
        assert (told, feed.should_stop()) == ([["extra"]], False)
        assert TFSparkNode.shutdown([{"programs": programs}])(iter([])) == [True]
        assert (told, feed.should_stop()) == ([["extra"], [""]], True)


def test_a_node_needs_no_more_of_howdah_than_travels(tmp_path: Path) -> None:
    package = tmp_path / "howdah"
    package.mkdir()
    (package / "__init__.py").write_text(_INIT)
    for name in _LINKED:
        (package / name).symlink_to(Path(_PACKAGE, name))
    program = f"import sys; sys.path[:] = [each for each in sys.path if each != {str(Path(_PACKAGE).parent)!r}]; "
    program += "from tensorflowonspark import TFSparkNode; import howdah as found; print(*found.__path__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(package)), done.stderr
