"""Run by spark-submit: calls functions by both distributors in turns, and prints when they were called as JSON."""

import json
import sys
import time

from pyspark.ml.torch.distributor import TorchDistributor as TheirDistributor
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from howdah.spark import TorchDistributor as OurDistributor

ROWS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
NODES, BATCH = 2, 64


def call():
    """Return when the last of all nodes was called."""
    called = time.time()
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    last = torch.tensor(called, dtype=torch.float64)
    dist.all_reduce(last, op=dist.ReduceOp.MAX)
    dist.destroy_process_group()
    return float(last)


def read(whose, rows):
    """Read all rows of this node; return when the last node had its last row, and how many rows all have read."""
    import torch
    import torch.distributed as dist

    if whose == "howdah":
        from howdah.spark import get_spark_partition_data_loader as load
    else:
        from pyspark.ml.torch.distributor import _get_spark_partition_data_loader as load
    count = sum(len(labels) for labels, _ in load(rows, BATCH))
    found = torch.tensor([time.time(), count], dtype=torch.float64)
    dist.init_process_group("gloo")
    last, total = found[:1].clone(), found[1:].clone()
    dist.all_reduce(last, op=dist.ReduceOp.MAX)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return float(last), int(total)


def main():
    spark = SparkSession.builder.getOrCreate()
    values = f.array_repeat(f.rand(1), 784).alias("values")
    frame = spark.range(ROWS, numPartitions=NODES).select(f.col("id").alias("label"), values).cache()
    frame.count()
    options = {"num_processes": NODES, "local_mode": False, "use_gpu": False}
    ours, theirs = OurDistributor(**options), TheirDistributor(**options)
    sides = {"howdah": (ours, ours.train_on_dataframe), "pyspark": (theirs, theirs._train_on_dataframe)}
    said = {name: {"start": [], "rows": []} for name in sides}
    for number in range(ROUNDS + 1):  # the first round warms up
        for name in list(sides) if number % 2 else list(reversed(sides)):
            distributor, train = sides[name]
            began = time.time()
            called = distributor.run(call)
            fed = time.time()
            last, rows = train(read, frame, name, ROWS // NODES)
            assert rows == ROWS, rows
            if number:
                said[name]["start"].append(called - began)
                said[name]["rows"].append(ROWS / (last - fed))
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
