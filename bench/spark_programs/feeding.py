"""Run by spark-submit: feeds one program in turns with the reading alone, and prints the rates as JSON."""

import json
import re
import sys
import time

import numpy
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from howdah.spark import Cluster, ClusterError


def consume(context):
    feed = context.feed()
    while feed.next_table(4096) is not None:
        pass


def fail(context):
    time.sleep(FAILS_AFTER_S)  # until `Cluster.run` has returned
    if context.index == 1:
        raise ValueError(f"raised at {time.time()}")
    time.sleep(600)


def timed(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def throw_away(batches):
    for batch in batches:
        yield batch.slice(0, 0).select(["label"])


def numbers_of(width):
    def rows(partition, _):
        random = numpy.random.default_rng(partition)
        for label in range(ROWS // PARTITIONS):
            yield label, random.random(width).tolist()

    return rows


FAILS_AFTER_S = 1.0
ROWS, PARTITIONS, ROUNDS = int(sys.argv[1]), 4, int(sys.argv[2])


def main():
    spark = SparkSession.builder.getOrCreate()
    context = spark.sparkContext
    said = {}
    for width in (784, 16):
        columns = f.array_repeat(f.rand(1), width).alias("values")
        frame = spark.range(ROWS, numPartitions=PARTITIONS).select(f.col("id").alias("label"), columns).cache()
        frame.count()
        rdd = context.parallelize([], PARTITIONS).mapPartitionsWithIndex(numbers_of(width)).cache()
        rdd.count()
        # A program has one kind of rows: each of the two gets its own.
        with Cluster.run(spark, consume, roles=1) as framed, Cluster.run(spark, consume, roles=1) as listed:
            rates = {"frame": [], "arrow": [], "rdd": [], "rows": []}
            for number in range(ROUNDS + 1):  # the first round warms up
                found = {
                    "frame": timed(lambda: framed.train(frame)),  # noqa: B023
                    "arrow": timed(lambda: frame.mapInArrow(throw_away, "label long").count()),  # noqa: B023
                    "rdd": timed(lambda: listed.train(rdd)),  # noqa: B023
                    "rows": timed(lambda: rdd.foreachPartition(lambda rows: [None for _ in rows] and None)),  # noqa: B023
                }
                if number:
                    for name, seconds in found.items():
                        rates[name].append(ROWS / seconds)
        said[str(width)] = rates
        frame.unpersist()
        rdd.unpersist()
    starts, stops, errors = [], [], []
    for _ in range(ROUNDS):
        began = time.monotonic()
        cluster = Cluster.run(spark, consume, roles=2)
        starts.append(time.monotonic() - began)
        cluster.train(context.parallelize(range(10), 2))  # the programs listen now
        stops.append(timed(cluster.shutdown))
        cluster = Cluster.run(spark, fail, roles=2)
        try:
            cluster.wait(60)
        except ClusterError as error:
            errors.append(time.time() - float(re.findall(r"raised at (\S+)", str(error))[0]))
    said |= {"start": starts, "stop": stops, "error": errors}
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
