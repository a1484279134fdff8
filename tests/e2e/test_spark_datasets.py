"""Tests that TensorFlow and JAX read what Spark's tasks bring, each in the environment of its example."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow
import pytest

from howdah.staging.virtual_environments import ensure_environment

ROOT = Path(__file__).parents[2]
LIMIT_S = 300
PROGRAM = """
import socket, sys, threading
import pyarrow
from howdah.spark import datasets
from howdah.spark.feed import DataFeed
from howdah.spark.feeding_task import Programs, end_feed, feed_partition
from howdah.spark.feed_messages import socket_name

KEY = b"k" * 32

def bring(partition):
    rows = range(partition * 100, partition * 100 + 100)
    batch = pyarrow.RecordBatch.from_pydict({"number": list(rows), "pair": [[float(row), 1.0] for row in rows]})
    feed_partition(Programs(sys.argv[2], KEY), partition, [batch])

with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
with DataFeed(socket_name(sys.argv[2], "worker:0"), KEY, "127.0.0.1", port) as feed:
    tasks = [threading.Thread(target=bring, args=(number,)) for number in range(3)]
    for task in tasks:
        task.start()

    def end():
        for task in tasks:
            task.join()
        end_feed("127.0.0.1", port, KEY, 10.0)

    threading.Thread(target=end).start()
    batches = list(getattr(datasets, sys.argv[1])(feed, 32, shuffle_rows=120))
    kinds = {type(batch["pair"]).__module__.partition(".")[0] for batch in batches}
    numbers = sorted(int(number) for batch in batches for number in batch["number"])
    print(kinds, numbers == list(range(300)), {tuple(batch["pair"].shape[1:]) for batch in batches})
"""


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.mark.parametrize(
    ("reader", "example", "module"),
    [("tf_dataset", "tensorflowonspark-digits", "tensorflow"), ("jax_batches", "digits-jax", "jaxlib")],
)
def test_a_framework_gets_its_own_arrays(tmp_path: Path, reader: str, example: str, module: str) -> None:
    python = ensure_environment(ROOT / "examples" / example / "requirements.lock", print) / "bin" / "python"
    (tmp_path / "pyarrow").symlink_to(Path(pyarrow.__file__).parent)  # the example's own environment may lack it
    command = [str(python), "-c", PROGRAM, reader, f"datasets-{tmp_path.name}"]
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{tmp_path}", "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout == f"{{'{module}'}} True {{(2,)}}\n", done.stderr[-2000:]
