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


def count(context, directory):
    found = sorted(row for batch in context.feed().batches(10) for row in batch["value"])
    Path(directory, f"streamed-{context.index}").write_text(json.dumps(found))


def double(context):
    feed = context.feed()
    while batch := feed.next_batch(64):
        feed.put_results((batch["value" if "value" in batch else "id"] * 2).tolist())


def fail(context):
    time.sleep(1)
    if context.index == 1:
        raise ValueError("this is what is wrong")
    time.sleep(600)


def late(context):
    time.sleep(3)
    assert context.feed().next_batch(10) == {}


def once(context):
    feed = context.feed()
    feed.next_batch(10)
    feed.terminate()


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
    Path(directory, "lines").mkdir()
    with Cluster.run(spark, count, [directory], roles=2) as cluster:
        query = cluster.train(spark.readStream.text(f"{directory}/lines"))
        for number in range(3):
            Path(directory, "lines", f"{number}.txt").write_text(f"first {number}\nsecond {number}\n")
            query.processAllAvailable()
        query.stop()
    parts = [json.loads(Path(directory, f"streamed-{index}").read_text()) for index in range(2)]
    said["streamed"] = sorted(line for part in parts for line in part)
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
    with Cluster.run(spark, once, roles=2) as cluster:
        # More than the buffers hold: 8 kB a row.
        rows = context.parallelize(range(8), 8).flatMap(lambda number: ([float(number)] * 1000 for _ in range(4000)))
        said["rows of a program that stops"] = cluster.train(rows)
    with Cluster.run(spark, late, roles=2):  # the feed is over before they listen
        pass
    said["usable"] = context.parallelize(range(10), 2).sum()
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
