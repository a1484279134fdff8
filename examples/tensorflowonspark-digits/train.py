"""Handwritten digits with TensorFlow on Spark's executors: spark-submit --py-files digits.py train.py DATA MODEL.

A chief and a worker train together. With `--input spark` Spark brings them the rows of an RDD, with `stream` those of a
stream, and with `tensorflow` each reads its share of the files. Then two other nodes, which know nothing of each
other, predict with the saved model (TFParallel), and the driver prints the accuracy.
"""

import argparse
import sys
from pathlib import Path

import digits
from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext
from tensorflowonspark import TFCluster, TFParallel


def train_fed(args, ctx):
    feed = ctx.get_data_feed()

    def batches():
        while not feed.should_stop():
            rows = feed.next_batch(digits.BATCH)
            yield [pixels for pixels, _ in rows], [label for _, label in rows]

    model = digits.train(batches(), digits.steps(args.epochs, ctx.num_workers))
    feed.terminate()
    if ctx.job_name == "chief":
        digits.export(model, args.model)


def train_reading(args, ctx):
    import random

    # Each worker has every second file: the chief the first, third and so on.
    files = sorted(Path(args.data, "train").glob("*.csv"))[ctx.executor_id :: ctx.num_workers]
    rows = [digits.parse(line) for file in files for line in file.read_text().splitlines()]

    def batches():
        while True:
            some = random.sample(rows, digits.BATCH)
            yield [pixels for pixels, _ in some], [label for _, label in some]

    model = digits.train(batches(), digits.steps(args.epochs, ctx.num_workers))
    if ctx.job_name == "chief":
        digits.export(model, args.model)


def predict(args, ctx):
    import tensorflow as tf

    model = tf.saved_model.load(args.model)
    lines = [line for file in Path(args.data, "test").glob("*.csv") for line in file.read_text().splitlines()]
    mine = [digits.parse(line) for line in lines[ctx.worker_num :: ctx.num_workers]]
    scores = model.signatures["serving_default"](pixels=tf.constant([pixels for pixels, _ in mine]))["scores"]
    guesses = tf.argmax(scores, axis=1).numpy()
    found = "".join(f"{label} {guess}\n" for (_, label), guess in zip(mine, guesses, strict=True))
    Path(args.model, f"predictions-{ctx.worker_num}").write_text(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="directory with train/*.csv and test/*.csv")
    parser.add_argument("model", help="directory for the saved model")
    parser.add_argument("--input", choices=("spark", "stream", "tensorflow"), default="spark")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext
    mode = TFCluster.InputMode.TENSORFLOW if args.input == "tensorflow" else TFCluster.InputMode.SPARK
    function = train_reading if args.input == "tensorflow" else train_fed
    cluster = TFCluster.run(sc, function, args, 2, 0, input_mode=mode, master_node="chief")
    images = sc.textFile(f"{args.data}/train", 4).map(digits.parse)
    if args.input == "stream":
        ssc = StreamingContext(sc, 1)
        cluster.train(ssc.queueStream([images] * args.epochs))  # as if the same rows came again each second
        ssc.start()
        cluster.shutdown(ssc)
    else:
        if args.input == "spark":
            cluster.train(images, args.epochs)
        cluster.shutdown()
    TFParallel.run(sc, predict, args, 2)
    lines = [line.split() for file in Path(args.model).glob("predictions-*") for line in file.read_text().splitlines()]
    status = digits.accuracy(lines)
    spark.stop()
    return status


if __name__ == "__main__":
    sys.exit(main())
