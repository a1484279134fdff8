"""The same as a Spark ML pipeline: spark-submit --py-files digits.py pipeline.py DATA MODEL.

`TFEstimator.fit` trains on two nodes, which the DataFrame is fed to; `TFModel.transform` predicts in Spark's own tasks.
"""

import argparse
import sys

import digits
from pyspark.sql import SparkSession
from tensorflowonspark.pipeline import TFEstimator, TFModel


def train(args, ctx):
    # Columns come sorted by name: `image` before `label`.
    feed = ctx.get_data_feed(input_mapping=args.input_mapping)

    def batches():
        while not feed.should_stop():
            columns = feed.next_batch(digits.BATCH)
            yield columns["pixels"], columns["labels"]

    model = digits.train(batches(), digits.steps(args.epochs, ctx.num_workers))
    feed.terminate()
    if ctx.job_name == "chief":
        digits.export(model, args.export_dir)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="directory with train/*.csv and test/*.csv")
    parser.add_argument("export_dir", help="directory for the saved model")
    args = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()

    def read(part):
        lines = spark.sparkContext.textFile(f"{args.data}/{part}", 4)
        return lines.map(digits.parse).toDF(["image", "label"])

    estimator = (
        TFEstimator(train, args)
        .setInputMapping({"image": "pixels", "label": "labels"})
        .setClusterSize(2)
        .setEpochs(10)
        .setExportDir(args.export_dir)
    )
    estimator.fit(read("train"))
    model = (
        TFModel(args)
        .setInputMapping({"image": "pixels"})
        .setOutputMapping({"scores": "scores"})
        .setExportDir(args.export_dir)
    )
    test = read("test").coalesce(2).cache()
    labels = [row.label for row in test.collect()]
    guesses = [max(range(digits.CLASSES), key=row.scores.__getitem__) for row in model.transform(test).collect()]
    status = digits.accuracy(zip(labels, guesses, strict=True))
    spark.stop()
    return status


if __name__ == "__main__":
    sys.exit(main())
