"""Writes and reads TFRecord files as a data source; run by spark-submit with a directory."""

import json
import sys

from pyspark.sql import SparkSession

from howdah.spark.tfrecord_source import TFRecordSource


def main(directory):
    spark = SparkSession.builder.getOrCreate()
    spark.dataSource.register(TFRecordSource)
    rows = [(number, bytes([number, 255]), f"row {number}", [float(number), 0.5]) for number in range(30)]
    frame = spark.createDataFrame(rows, "id long, image binary, name string, weights array<double>")
    frame.repartition(3).write.format("tfrecord").mode("append").save(f"{directory}/records")
    found = spark.read.format("tfrecord").load(f"{directory}/records")
    said = {"schema": found.schema.simpleString(), "rows": found.count()}
    read = [(row.id, bytes(row.image), row.name, list(row.weights)) for row in found.orderBy("id").collect()]
    said["same"] = read == rows
    frame.coalesce(1).write.format("tfrecord").mode("overwrite").save(f"{directory}/records")
    said["again"] = spark.read.format("tfrecord").load(f"{directory}/records").count()
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
