"""Handwritten digits with PyTorch's DistributedDataParallel, fed from a DataFrame: spark-submit fit.py DATA MODEL.

Two nodes train, each on the rows that Spark's tasks bring it. Then two others predict with the saved model, and the
driver prints their accuracy on the rows for testing. The nodes' Python, with PyTorch, is made from requirements.lock:
Spark's own executors need none of it.
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from howdah.spark import Cluster
from howdah.spec import Environment

PYTHON = Environment(requirements=str(Path(__file__).resolve().with_name("requirements.lock")))
EPOCHS, LEAST = 20, 0.9


def classifier():
    from torch import nn

    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(context, directory):
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel

    from howdah.spark.datasets import torch_dataset

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with Join([model]):  # the nodes may get different numbers of rows
        for batch in torch_dataset(context.feed(), 32, shuffle_rows=500):
            loss = torch.nn.functional.cross_entropy(model(batch["pixels"].float()), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if context.rank == 0:
        Path(directory).mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), Path(directory, "model.pt"))
    dist.destroy_process_group()


def predict(context, directory):
    import torch

    model = classifier()
    model.load_state_dict(torch.load(Path(directory, "model.pt"), weights_only=True))
    feed = context.feed()
    while batch := feed.next_batch(256):
        feed.put_results(model(torch.from_numpy(batch["pixels"]).float()).argmax(1).tolist())


def read(spark: SparkSession, directory: str) -> DataFrame:
    """Return the rows of CSV files: the label, and 64 pixels from 0 to 1."""
    numbers = f.split(f.col("value"), ",").cast("array<double>")
    pixels = f.transform(f.slice(numbers, 2, 64), lambda value: value / 16)
    return spark.read.text(directory).select(numbers[0].cast("long").alias("label"), pixels.alias("pixels"))


def main(data: str, directory: str) -> int:
    spark = SparkSession.builder.getOrCreate()
    with Cluster.run(spark, train, [directory], roles=2, framework="pytorch", environment=PYTHON) as cluster:
        cluster.train(read(spark, f"{data}/train").repartition(4), EPOCHS)
    test = read(spark, f"{data}/test").coalesce(2).cache()
    with Cluster.run(spark, predict, [directory], roles=2, environment=PYTHON) as cluster:
        rows = test.rdd.map(lambda row: (row.label, row.pixels))
        labels = rows.map(lambda row: row[0]).collect()
        found = cluster.inference(rows.map(lambda row: {"pixels": row[1]})).collect()
    reached = sum(one == other for one, other in zip(labels, found, strict=True)) / len(labels)
    print(f"test accuracy {reached:.4f} on {len(labels)} images", flush=True)
    spark.stop()
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
