"""Feeds two programs, which write what they have got; run by `spark-submit sums.py DIRECTORY`."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from howdah.spark import Cluster, ClusterError


def add(context, directory):
    feed, total, rows = context.feed(), 0, 0
    while batch := feed.next_batch(100):
        total += int(batch["value" if "value" in batch else "id"].sum())
        rows += len(next(iter(batch.values())))
    Path(directory, f"{context.role}-{context.index}").write_text(json.dumps([rows, total]))


def double(context):
    feed = context.feed()
    while batch := feed.next_batch(64):
        feed.put_results((batch["value" if "value" in batch else "id"] * 2).tolist())


def fail(context):
    time.sleep(1)
    if context.index == 1:
        raise ValueError("this is what is wrong")
    time.sleep(600)


def main(directory):
    spark = SparkSession.builder.getOrCreate()
    context = spark.sparkContext
    said = {}
    began = time.monotonic()
    with Cluster.run(spark, add, [directory], roles=2) as cluster:
        said["start_s"] = time.monotonic() - began
        said["rows"] = cluster.train(context.parallelize(range(10000), 4), epochs=2)
        said["rows of a frame"] = cluster.train(spark.range(1000).repartition(3))
        said["job"] = cluster.job_id
        began = time.monotonic()
    said["shutdown_s"] = time.monotonic() - began
    said["sums"] = [json.loads(Path(directory, f"worker-{index}").read_text()) for index in range(2)]
    with Cluster.run(spark, double, roles=2) as cluster:
        rdd = cluster.inference(context.parallelize(range(1000), 3))
        said["doubled"] = rdd.collect() == [2 * number for number in range(1000)]
        frame = cluster.inference(spark.range(100).repartition(2), "doubled long")
        said["frame"] = sorted(row.doubled for row in frame.collect()) == [2 * number for number in range(100)]
    began = time.monotonic()
    try:
        with Cluster.run(spark, fail, roles=2) as cluster:
            cluster.train(context.parallelize(range(10), 2))
    except ClusterError as error:
        said["error"], said["error_s"] = str(error), time.monotonic() - began
    said["usable"] = context.parallelize(range(10), 2).sum()
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
