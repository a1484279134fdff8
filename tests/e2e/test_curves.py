"""Tests reading event files and checkpoints of TensorFlow, PyTorch and tensorboardX live from a real HDFS."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hdfs_native
import pytest
import tensorboardX
from commandline import eventually
from test_checkpoint_formats import written

from howdah.eventfiles.client import EventFileService
from howdah.hadoop.conf import default_filesystem, load
from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem

pytestmark = pytest.mark.timeout(900)  # where environments are made first

STEPS = 300
TENSORFLOW = """
import sys, numpy, tensorflow as tf
def told(name):
    data = tf.compat.v1.SummaryMetadata.PluginData(plugin_name=name)
    return tf.compat.v1.SummaryMetadata(plugin_data=data)
writer = tf.summary.create_file_writer(sys.argv[1] + "/logs/tf")
with writer.as_default():
    for step in range(300):
        tf.summary.write("loss", tf.constant(1 / (step + 1)), step, told("scalars"))
    edges = numpy.linspace(-1, 1, 5)
    buckets = numpy.stack([edges[:-1], edges[1:], numpy.arange(4.0)], 1)
    tf.summary.write("weights", tf.constant(buckets), 7, told("histograms"))
    tone = tf.audio.encode_wav(tf.sin(tf.range(800.0) / 8)[:, None], 8000)
    tf.summary.write("tone", tf.stack([[tone, ""]]), 7, told("audio"))
    rows = [[4, 2], [4, 1], [0, 3], [0, 2], [0.5, 2 / 3], [1, 0.5]]
    tf.summary.write("classes", tf.constant(rows, tf.float32), 7, told("pr_curves"))
    tf.summary.write("note", tf.constant("<b>"), 7, told("text"))
writer.close()
tf.train.Checkpoint(a=tf.Variable(numpy.arange(12.0).reshape(3, 4), name="a")).save(sys.argv[1] + "/kept/model")
"""
PYTORCH = """
import os, sys, torch, torch.distributed.checkpoint
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2).bfloat16())
os.makedirs(sys.argv[1] + "/kept")
torch.nn.init.ones_(model[1].weight)
torch.save({"model": model.state_dict(), "step": 3}, sys.argv[1] + "/kept/model-3.pt")
torch.save(model, sys.argv[1] + "/kept/whole-4.pt")
torch.distributed.checkpoint.save(model.state_dict(), checkpoint_id=sys.argv[1] + "/kept/sharded-5")
"""


class Asker:
    """A service that knows the sandbox, asked for what is below one directory."""

    def __init__(self, conf_dir: str, place: str) -> None:
        self.loop, self.place = asyncio.new_event_loop(), place
        self.service = EventFileService({**os.environ, "HADOOP_CONF_DIR": conf_dir})

    def __call__(self, target: str, status: int = 200) -> Any:
        answer = self.loop.run_until_complete(self.service.get(target, [("", self.place)]))
        assert answer.status == status, answer.body
        return json.loads(answer.body) if answer.content_type == "application/json" else answer.body

    def close(self) -> None:
        self.loop.run_until_complete(self.service.close())
        self.loop.close()


@pytest.fixture(scope="module")
def base(sandbox: Sandbox) -> str:
    return uris.join(default_filesystem(load(str(sandbox.conf_dir))), "curves", os.urandom(4).hex())


@pytest.fixture(scope="module")
def fs(sandbox: Sandbox, base: str) -> FileSystem:
    return filesystem(base, str(sandbox.conf_dir))


@pytest.fixture(scope="module")
def ask(sandbox: Sandbox, base: str) -> Iterator[Asker]:
    asker = Asker(str(sandbox.conf_dir), base)
    yield asker
    asker.close()


def upload(fs: FileSystem, directory: Path, base: str) -> None:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            target = uris.join(base, str(path.relative_to(directory)))
            fs.mkdirs(uris.parent(target))
            fs.put(path, target)


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory, fs: FileSystem, base: str) -> str:
    for example, source in (("digits-tensorflow", TENSORFLOW), ("digits-pytorch", PYTORCH)):
        upload(fs, written(tmp_path_factory.mktemp(example), example, source), uris.join(base, example))
    directory = tmp_path_factory.mktemp("tensorboardX")
    with tensorboardX.SummaryWriter(str(directory / "x")) as writer:
        for step in range(STEPS):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_hparams({"lr": 0.1, "name": "<i>"}, {"final": 0.5}, name="hp")
    upload(fs, directory, base)
    return base


def test_curves_of_two_frameworks(uploaded: str, ask: Asker) -> None:
    answer = ask("curves/runs")
    assert [run["run"] for run in answer["runs"]] == ["digits-tensorflow/logs/tf", "x", "x/hp"]
    assert not answer["errors"]
    both = ask("curves/scalars?tag=loss")["series"]
    assert [series["count"] for series in both] == [STEPS, STEPS]
    values = [[point[3] for point in series["points"]] for series in both]
    assert values[0] == values[1]
    assert ask("curves/histograms?run=digits-tensorflow/logs/tf")["steps"][0]["buckets"][3] == [0.5, 1.0, 3.0]
    assert ask("curves/text?run=digits-tensorflow/logs/tf")["texts"][0]["text"] == "<b>"
    assert ask("curves/audio?run=digits-tensorflow/logs/tf")["steps"][0]["count"] == 1
    assert ask("curves/audio_clip?run=digits-tensorflow/logs/tf&tag=tone")[:4] == b"RIFF"
    (curve,) = ask("curves/pr_curves?run=digits-tensorflow/logs/tf")["steps"]
    assert curve["points"][0] == [1.0, 0.5, 0.0]
    assert ask("curves/hparams")["runs"][0]["values"] == {"lr": 0.1, "name": "<i>"}
    assert ask("curves/scalars.svg?tag=loss&language=zh").startswith(b"<svg")
    for chart in ("histograms", "distributions"):
        assert b"no points yet" not in ask(f"curves/{chart}.svg?run=digits-tensorflow/logs/tf&tag=weights")


def test_contents_of_checkpoints(uploaded: str, ask: Asker) -> None:
    rows = {row["name"]: row for row in ask("checkpoints")["checkpoints"]}
    assert {(name, row["valid"]) for name, row in rows.items()} == {
        ("digits-tensorflow/kept/model-1", True),
        ("digits-pytorch/kept/model-3.pt", True),
        ("digits-pytorch/kept/whole-4.pt", True),
        ("digits-pytorch/kept/sharded-5", True),
    }
    bundle = f"uri={rows['digits-tensorflow/kept/model-1']['uri']}"
    names = {one["name"]: one for one in ask(f"checkpoints/tensors?{bundle}")["tensors"]}
    assert (names["a/.ATTRIBUTES/VARIABLE_VALUE"]["dtype"], names["a/.ATTRIBUTES/VARIABLE_VALUE"]["shape"]) == (
        "float64",
        [3, 4],
    )
    found = ask(f"checkpoints/statistics?{bundle}&name=a/.ATTRIBUTES/VARIABLE_VALUE")
    assert (found["min"], found["max"], found["mean"], found["zeros"]) == (0.0, 11.0, 5.5, 1)
    torch = f"uri={rows['digits-pytorch/kept/model-3.pt']['uri']}"
    assert ask(f"checkpoints/statistics?{torch}&name=model.1.weight")["mean"] == 1.0
    whole = ask(f"checkpoints/tensors?uri={rows['digits-pytorch/kept/whole-4.pt']['uri']}")
    sharded = ask(f"checkpoints/tensors?uri={rows['digits-pytorch/kept/sharded-5']['uri']}")["tensors"]
    assert {"name": "0.weight", "dtype": "float32", "shape": [3, 4], "count": 12, "bytes": 48} in sharded
    assert [one["name"] for one in whole["tensors"]] == ["0.weight", "0.bias", "1.weight", "1.bias"]


@pytest.fixture
def ask_without_a_host(sandbox: Sandbox, base: str) -> Iterator[Asker]:
    """As README's examples name files: on the cluster's own file system, whichever that is."""
    asker = Asker(str(sandbox.conf_dir), f"hdfs://{uris.path(base)}")
    yield asker
    asker.close()


@pytest.mark.parametrize("how", ["appended", "flushed", "without-a-host"])
def test_a_new_point_is_soon_there(
    tmp_path: Path, fs: FileSystem, base: str, ask: Asker, ask_without_a_host: Asker, sandbox: Sandbox, how: str
) -> None:
    """By append and close, and by a writer that keeps the file open, as TensorFlow's does."""
    ask = ask_without_a_host if how == "without-a-host" else ask
    writer = tensorboardX.SummaryWriter(str(tmp_path))
    (path,) = tmp_path.iterdir()
    target, sent = uris.join(base, how, path.name), 0
    fs.mkdirs(uris.parent(target))
    client = hdfs_native.Client(uris.root(base), load(str(sandbox.conf_dir)))
    held = client.create(uris.path(target), hdfs_native.WriteOptions()) if how != "appended" else None
    for step in range(5):
        writer.add_scalar("live", step, step)

        def flushed(step: int = step) -> bytes:
            writer.flush()  # whose own thread may still hold the point
            data = path.read_bytes()
            return data if data.count(b"live") > step else b""

        data = eventually(flushed, f"point {step} in the file")
        if held is None:
            fs.append(target, data[sent:])
        else:
            held.write(data[sent:])
            held.hsync()
        sent = len(data)

        def answered(step: int = step) -> bool:
            return any((one["run"], one["last"][0]) == (how, step) for one in ask("curves/scalars?tag=live")["series"])

        eventually(answered, f"point {step} in the curve")
    writer.close()
    if held is not None:
        held.close()


def test_a_deleted_directory_keeps_what_was_read(fs: FileSystem, uploaded: str, ask: Asker) -> None:
    before = {run["run"] for run in ask("curves/runs")["runs"]}
    fs.delete(uris.join(uploaded, "x"))
    time.sleep(1.1)  # the pause between two looks
    assert {run["run"] for run in ask("curves/runs")["runs"]} == before
    assert ask("curves/image?run=x&tag=none", 404)["error"]
