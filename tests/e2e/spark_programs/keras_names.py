"""Predicts with a Keras model that a node has saved, by the names that Keras 2 gives to tensors; run by spark-submit
with a directory."""

import json
import sys

from pyspark.sql import SparkSession
from tensorflowonspark import TFParallel
from tensorflowonspark.pipeline import TFModel


def save(directory, ctx):
    import tensorflow as tf
    from tensorflowonspark import compat

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[2], kernel_initializer="ones")])
    compat.export_saved_model(model, f"{directory}/model", is_chief=True)


def main(directory):
    spark = SparkSession.builder.getOrCreate()
    TFParallel.run(spark.sparkContext, save, directory, 1)
    model = TFModel({}).setExportDir(f"{directory}/model")
    model.setInputMapping({"pair": "dense_input"}).setOutputMapping({"dense": "sum"})
    frame = spark.createDataFrame([([1.0, 2.0],), ([3.0, 4.0],)], "pair array<double>").coalesce(1)
    print("SAID " + json.dumps({"sums": [row.sum[0] for row in model.transform(frame).collect()]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
