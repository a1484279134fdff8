"""Handwritten digits as programs for pyspark's TorchDistributor train: spark-submit distributor.py DATA.

Only the import is another one. Two nodes train on the rows of a DataFrame, and the driver gets the weights from the
first one, with which it tests. The nodes' Python, with PyTorch, is made from requirements.lock.
"""

import sys
from pathlib import Path

from fit import read
from pyspark.sql import SparkSession

from howdah.spark import TorchDistributor, get_spark_partition_data_loader

SAMPLES, LEAST = 15_000, 0.9


def train(learning_rate, test):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for labels, pixels in get_spark_partition_data_loader(SAMPLES, batch_size=32):
        loss = nn.functional.cross_entropy(model(pixels.float()), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
    found = model.module(torch.tensor([pixels for _, pixels in test])).argmax(1).tolist()
    return sum(one == label for one, (label, _) in zip(found, test, strict=True)) / len(test)


def main(data):
    spark = SparkSession.builder.getOrCreate()
    test = [(row.label, list(row.pixels)) for row in read(spark, f"{data}/test").collect()]
    environment = {"requirements": str(Path(__file__).resolve().with_name("requirements.lock"))}
    distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False, environment=environment)
    reached = distributor.train_on_dataframe(train, read(spark, f"{data}/train").repartition(5), 3e-3, test)
    print(f"test accuracy {reached:.4f} on {len(test)} images", flush=True)
    spark.stop()
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
