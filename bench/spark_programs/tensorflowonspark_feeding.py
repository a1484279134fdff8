"""Run by spark-submit, with TensorFlowOnSpark or with howdah's module of its name: feeds one node with RDDs, and prints
rates and times as JSON."""

import json
import sys
import time
from pathlib import Path

import numpy
from pyspark.sql import SparkSession
from tensorflowonspark import TFCluster

PARTITIONS = 4


def consume(directory, ctx):
    Path(directory, f"called-{time.time_ns()}").touch()
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(1024)


def rows_of(width, count):
    def rows(partition, _):
        random = numpy.random.default_rng(partition)
        for label in range(count // PARTITIONS):
            yield label, random.random(width).tolist()

    return rows


def main(count, rounds, directory):
    context = SparkSession.builder.getOrCreate().sparkContext
    said = {"starts": [], "stops": []}
    for width in (784, 16):
        rdd = context.parallelize([], PARTITIONS).mapPartitionsWithIndex(rows_of(width, count)).cache()
        rdd.count()
        rates = said[str(width)] = []
        for _ in range(rounds):
            called = Path(directory, f"{width}-{time.time_ns()}")
            called.mkdir()
            began = time.time()
            cluster = TFCluster.run(context, consume, str(called), 2, 0, input_mode=TFCluster.InputMode.SPARK)
            while len(list(called.iterdir())) < 2:
                time.sleep(0.01)
            said["starts"].append(time.time() - began)
            cluster.train(rdd, 1)
            fed = time.monotonic()
            cluster.train(rdd, 1)
            rates.append(count / (time.monotonic() - fed))
            stopped = time.monotonic()
            cluster.shutdown()
            said["stops"].append(time.monotonic() - stopped)
        rdd.unpersist()
    print("SAID " + json.dumps(said), flush=True)
    context.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
