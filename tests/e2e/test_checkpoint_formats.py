"""Tests that no incomplete checkpoint of TensorFlow or PyTorch is taken, wherever it is cut off."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planned_environment import planned_python

from howdah.checkpoints import discovery, file_validation
from howdah.eventfiles.checkpoint_contents import CheckpointContents
from howdah.spec import uris
from howdah.storage.factory import filesystem

ROOT = Path(__file__).parents[2]
HOWDAH = str(Path(sys.executable).with_name("howdah"))

pytestmark = pytest.mark.timeout(900)  # where environments are made first

TENSORFLOW = """
import sys, numpy, tensorflow as tf
directory = sys.argv[1]
kept = tf.train.Checkpoint(a=tf.Variable(numpy.random.rand(300, 40)), b=tf.Variable(3), c=tf.Variable(["x", "yz"]))
manager = tf.train.CheckpointManager(kept, directory + "/bundle", max_to_keep=3)
manager.save()
manager.save()
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
model.save(directory + "/model.keras")
model.save(directory + "/model.h5")
model.export(directory + "/export/saved")
"""
PYTORCH = """
import sys, torch, torch.distributed.checkpoint as dcp
directory, model = sys.argv[1], torch.nn.Linear(64, 32)
torch.save({"model": model.state_dict(), "step": 3}, directory + "/model.pt")
torch.save(model.state_dict(), directory + "/old.pt", _use_new_zipfile_serialization=False)
dcp.save(model.state_dict(), checkpoint_id=directory + "/sharded/step-3")
"""
TWO = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
import torch.multiprocessing

def main(rank, directory):
    rendezvous = dict(init_method=f"file://{directory}/rendezvous", rank=rank, world_size=2)
    dist.init_process_group("gloo", **rendezvous)
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(1)
    whole = torch.randn(101, 16)
    whole[0, 0], whole[100, 15] = float("nan"), 0
    split = {"rows": distribute_tensor(whole, mesh, [Shard(0)]),
             "columns": distribute_tensor(whole.double(), mesh, [Shard(1)]),
             "turned": torch.arange(12.).reshape(3, 4).t(), "one": torch.tensor(2.5), "step": 7}
    dcp.save(split, checkpoint_id=directory + "/two")
    if rank == 0:
        good = whole[torch.isfinite(whole)].double()
        print(good.min().item(), good.max().item(), good.mean().item(), good.std(unbiased=False).item())
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(main, (sys.argv[1],), nprocs=2)
"""


def python_of(example: str) -> str:
    """The interpreter of an example's environment, in the user's own cache."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    job = str(ROOT / "examples" / example / "job.yaml")
    planned = subprocess.run(
        [HOWDAH, "plan", "--on", "local", "--json", job], env=kept, capture_output=True, text=True, check=True
    )
    return planned_python(planned.stdout)


def written(directory: Path, example: str, source: str) -> Path:
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [python_of(example), "-c", source, str(directory)]
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return directory


@pytest.fixture(scope="module")
def tensorflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tensorflow"), "digits-tensorflow", TENSORFLOW)


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("pytorch"), "digits-pytorch", PYTORCH)


def newest(directory: Path) -> str | None:
    found = discovery.find(filesystem("file:///"), uris.of_local(directory)).checkpoint
    return None if found is None else found.name


def cuts(size: int) -> list[int]:
    """Every length near both ends, and some between."""
    between = random.Random(size).sample(range(size), min(size, 200))
    return sorted({*range(min(size, 64)), *between, *range(max(0, size - 64), size)})


def flaw(data: bytes, name: str) -> str | None:
    return file_validation.find_defect(io.BytesIO(data), name, len(data))


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_keras(tensorflow: Path, name: str) -> None:
    data = (tensorflow / name).read_bytes()
    assert not flaw(data, name)
    assert all(flaw(data[:length], name) for length in cuts(len(data)))


def test_tensorflow(tensorflow: Path, tmp_path: Path) -> None:
    assert newest(tensorflow / "bundle") == "ckpt-2"
    assert newest(tensorflow / "export") == "saved"
    state = (tensorflow / "bundle/checkpoint").read_bytes()
    assert file_validation.named_by(state) == "ckpt-2"
    for part in ("index", "data-00000-of-00001"):
        data = (tensorflow / f"bundle/ckpt-2.{part}").read_bytes()
        directory = Path(shutil.copytree(tensorflow / "bundle", tmp_path / part))
        for length in cuts(len(data)):
            (directory / f"ckpt-2.{part}").write_bytes(data[:length])
            assert newest(directory) == "ckpt-1", (part, length)


def test_torch(pytorch: Path) -> None:
    data = (pytorch / "model.pt").read_bytes()
    assert flaw(data, "model.pt") == ""
    assert all(flaw(data[:length], "model.pt") for length in range(len(data)))
    assert flaw((pytorch / "old.pt").read_bytes(), "old.pt") is None, "a format that does not tell"


def test_torch_sharded(pytorch: Path, tmp_path: Path) -> None:
    assert newest(pytorch / "sharded") == "step-3"
    directory = Path(shutil.copytree(pytorch / "sharded", tmp_path / "sharded"))
    metadata = directory / "step-3/.metadata"
    data = metadata.read_bytes()
    for length in cuts(len(data)):
        metadata.write_bytes(data[:length])
        assert newest(directory) is None, length
    metadata.write_bytes(data)
    (directory / "step-3/__0_0.distcp").unlink()
    assert newest(directory) is None


def test_a_tensor_that_two_processes_have_written(tmp_path: Path) -> None:
    """All of it is read, whichever way it was split, without torch."""
    (tmp_path / "two.py").write_text(TWO)
    done = subprocess.run(
        [python_of("digits-pytorch"), tmp_path / "two.py", tmp_path], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    minimum, maximum, mean, deviation = map(float, done.stdout.split())
    contents, uri = CheckpointContents(), uris.of_local(tmp_path / "two")
    shapes = {row["name"]: (row["dtype"], row["shape"]) for row in contents.tensors([uri], uri)["tensors"]}
    assert shapes == {
        "rows": ("float32", (101, 16)), "columns": ("float64", (101, 16)), "turned": ("float32", (4, 3)),
        "one": ("float32", ()),
    }  # fmt: skip
    for name in ("rows", "columns"):
        found = contents.statistics([uri], uri, name)
        assert (found["sampled"], found["nan"], found["zeros"]) == (1616, 1, 1)
        assert (found["min"], found["max"]) == (minimum, maximum)
        assert (found["mean"], found["std"]) == (pytest.approx(mean), pytest.approx(deviation))
    assert contents.statistics([uri], uri, "turned")["mean"] == 5.5
    assert contents.statistics([uri], uri, "one")["max"] == 2.5
