"""Feeds programs with streams, with more than they want, and too late; run by `spark-submit ends.py DIRECTORY`."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from howdah.spark import Cluster


def count(context, directory):
    found = sorted(row for batch in context.feed().batches(10) for row in batch["value"])
    Path(directory, f"streamed-{context.index}").write_text(json.dumps(found))


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
    Path(directory, "lines").mkdir()
    with Cluster.run(spark, count, [directory], roles=2) as cluster:
        query = cluster.train(spark.readStream.text(f"{directory}/lines"))
        for number in range(3):
            Path(directory, "lines", f"{number}.txt").write_text(f"first {number}\nsecond {number}\n")
            query.processAllAvailable()
    said["stream goes on"] = query.isActive
    parts = [json.loads(Path(directory, f"streamed-{index}").read_text()) for index in range(2)]
    said["streamed"] = sorted(line for part in parts for line in part)
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
