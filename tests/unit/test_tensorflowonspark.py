"""Tests the parts of the module tensorflowonspark that need no Spark."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

from howdah.errors import HowdahError
from howdah.wire.tensorboard_command import link

SOURCE = Path(__file__).parents[2] / "distributions" / "tensorflowonspark" / "src"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SOURCE))
    monkeypatch.chdir(tmp_path)
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "tensorflowonspark"]:
        del sys.modules[name]


def test_nodes_register_with_the_key_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from tensorflowonspark import reservation

    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    monkeypatch.setenv("TFOS_SERVER_KEY", "11" * 32)
    caplog.set_level("INFO")
    server = reservation.Server(2)
    address = server.start()
    assert f"listening for reservations at {address}" in caplog.messages  # whoever ends a stream by it needs it
    try:
        client = reservation.Client(address)
        assert client.register({"node": 1}) == "OK"
        assert server.reservations.remaining() == 1
        waiting: list[Any] = []
        thread = threading.Thread(target=lambda: waiting.append(server.await_reservations(None, timeout=10)))
        thread.start()
        assert client.register({"node": 2}) == "OK"
        thread.join(10)
        assert waiting == [[{"node": 1}, {"node": 2}]]
        assert client.await_reservations() == waiting[0]
        assert not server.done
        monkeypatch.setenv("TFOS_SERVER_KEY", "22" * 32)
        with pytest.raises(ConnectionError):
            reservation.Client(address).request_stop()
        assert not server.done
        assert client.request_stop() == "OK"
        assert server.done
        client.close()
    finally:
        server.stop()
        server.stop()  # as in a program that shuts its cluster down twice


def test_missing_nodes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import reservation

    server = reservation.Server(2)
    with pytest.raises(Exception, match=r"2 nodes have not registered in 0\.2 s"):
        server.await_reservations(None, timeout=0.2)
    with pytest.raises(Exception, match="a node has failed: it broke"):
        server.await_reservations(None, {"error": "it broke"})
    monkeypatch.setenv("TFOS_SERVER_PORT", "5000-5002")
    assert server.get_server_ports() == [5000, 5001, 5002]


def test_rows_of_a_manager_come_in_batches() -> None:
    from tensorflowonspark import TFManager, TFNode, marker

    manager = TFManager.start(b"key", ["input", "output"])
    queue = manager.get_queue("input")
    for item in [(1, 2), (3, 4), marker.EndPartition(), (5, 6), None]:
        queue.put(item)
    feed = TFNode.DataFeed(manager, train_mode=False, input_mapping={"b": "second", "a": "first"})
    assert feed.next_batch(10) == {"first": [1, 3], "second": [2, 4]}
    assert not feed.should_stop()
    assert feed.next_batch(10) == {"first": [5], "second": [6]}
    assert feed.should_stop()
    feed.batch_results([7])
    assert manager.get_queue("output").get() == 7
    feed.drain_s = 0.1
    feed.terminate()
    assert manager.get("state")._getvalue() == "terminating"
    manager.shutdown()


@pytest.mark.parametrize(
    ("path", "default", "absolute"),
    [
        ("hdfs://other/x", "hdfs://name", "hdfs://other/x"),
        ("/x", "hdfs://name", "hdfs://name/x"),
        ("x", "hdfs://name", "hdfs://name/user/somebody/x"),
        ("x", "file://", "file:///home/me/x"),
    ],
)
def test_paths_get_a_scheme(path: str, default: str, absolute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark.TFSparkNode import TFNodeContext

    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    assert TFNodeContext(defaultFS=default, working_dir="/home/me").absolute_path(path) == absolute


def test_a_nodes_number_is_kept_in_its_directory() -> None:
    from tensorflowonspark import util

    util.write_executor_id(7)
    assert util.read_executor_id() == 7
    assert util.find_in_path("/nonexistent:.", "executor_id") == "./executor_id"
    assert util.find_in_path("/nonexistent", "executor_id") is False


def test_the_class_path_changes_no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tensorflowonspark import node_environment

    hadoop = tmp_path / "bin" / "hadoop"
    hadoop.parent.mkdir()
    hadoop.write_text('#!/bin/sh\n[ "$*" = "classpath --glob" ] && echo /a.jar:/b.jar\n')
    hadoop.chmod(0o755)
    monkeypatch.setenv("HADOOP_PREFIX", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("CLASSPATH", "/own.jar")
    monkeypatch.setenv("TFOS_CLASSPATH_UPDATED", "")
    monkeypatch.delenv("TFOS_CLASSPATH_UPDATED")
    node_environment.set_class_path()
    assert os.environ["CLASSPATH"] == "/own.jar:/a.jar:/b.jar"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"


def test_free_gpus_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflowonspark import gpu_info

    answers = {"--query-gpu=index,uuid": ["0, A", "1, B", "2, C"], "--query-compute-apps=gpu_uuid": ["B"]}
    monkeypatch.setattr(gpu_info, "_query", lambda what: answers[what])
    assert gpu_info.get_gpus(1, 0) == "0"
    assert gpu_info.get_gpus(1, 1) == "2"
    assert sorted(gpu_info.get_gpus(2, format=gpu_info.AS_LIST)) == ["0", "2"]
    monkeypatch.setattr(gpu_info, "_WAIT_S", 0.0)
    with pytest.raises(Exception, match="3 GPUs are wanted, and 2 are free"):
        gpu_info.get_gpus(3)


def test_what_programs_log_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module sets up logging, unless the program has."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    import tensorflowonspark

    assert tensorflowonspark.__version__ == "2.2.5"
    assert (root.level, len(root.handlers)) == (logging.INFO, 1)


def test_a_model_is_saved_where_an_exporter_says() -> None:
    """TensorFlow's exporter of estimators makes names of directories as bytes, which Keras refuses."""
    from tensorflowonspark import compat

    class Model:
        def save(self, directory: str, save_format: str = "tf") -> None:
            saved.append((directory, save_format))

    saved: list[tuple[str, str]] = []
    for given in (b"/a/1", "/a/1", Path("/a/1")):
        compat.export_saved_model(Model(), given, is_chief=True)
    compat.export_saved_model(Model(), b"/a/1")
    assert saved == [("/a/1", "tf")] * 3 + [("worker_model", "tf")]


@pytest.fixture
def tfcluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    pyspark_stand_in.install(monkeypatch)
    from tensorflowonspark import TFCluster

    return TFCluster


def test_no_token_is_in_the_log_of_the_driver(tfcluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    opens = link("node1", 6006, "hush-hush")
    tfcluster._log_tensorboard(SimpleNamespace(outcome=None, check=lambda: None, tensorboard=opens))
    (said,) = caplog.messages
    assert said.startswith("TensorBoard running at: http://node1:6006/")
    assert "cluster.tensorboard_url()" in said
    assert "hush-hush" not in said


def test_nobody_waits_for_the_tensorboard_of_a_cluster_that_is_lost(
    tfcluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfcluster, "_STOP_POLL_S", 0.01)

    class Lost:
        outcome, tensorboard = None, ""

        def check(self) -> None:
            raise HowdahError("the cluster is followed no more")

    class Damaged:
        outcome = None

        def check(self) -> None:
            pass

        @property
        def tensorboard(self) -> str:
            raise ValueError("no link")

    for job in (Lost(), Damaged()):
        waiting = threading.Thread(target=tfcluster._log_tensorboard, args=(job,), daemon=True)
        waiting.start()
        waiting.join(10)
        assert not waiting.is_alive()


def test_a_driver_in_a_container_writes_the_servers_key_beside_itself(
    tfcluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """YARN sets HOME to /home/, which is nobody's; it is not known to be a container when the module is imported."""
    from tensorflowonspark import reservation

    for name in ("HOWDAH_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", "/home/")
    keys: list[Path] = []
    start = reservation.Server.start

    def started(server: Any) -> Any:
        start(server)
        keys.extend(tmp_path.rglob("*.key"))
        server.stop()
        raise RuntimeError("enough")

    monkeypatch.setattr(reservation.Server, "start", started)
    context = SimpleNamespace(
        getConf=lambda: {"spark.submit.deployMode": "cluster"},
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: {}),
    )
    with pytest.raises(RuntimeError, match="enough"):
        tfcluster.run(context, print, [], 1, 0)
    (key,) = keys
    assert key.is_relative_to(tmp_path / "howdah-home")
