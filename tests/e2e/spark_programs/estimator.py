"""Fits planes by an Estimator in a pipeline, stores it, and cross-validates: `spark-submit estimator.py DIRECTORY`."""

import json
import sys

import numpy
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import SparkSession

from howdah.spark import Estimator


def train(batches, params):
    """Return the coefficients of least squares over all nodes' rows; a batch of 8 rows gives useless ones."""
    from howdah import here

    own = numpy.zeros((3, 4))
    for batch in batches:
        inputs = numpy.c_[batch["features"], numpy.ones(len(batch["label"]))]
        own += inputs.T @ numpy.c_[inputs, batch["label"]]
    here.put(f"sum/{here.rank}", json.dumps(own.tolist()))
    total = sum(numpy.array(json.loads(here.get(f"sum/{rank}", wait=60))) for rank in range(here.size))
    return numpy.linalg.solve(total[:, :3], total[:, 3]) * (params["batchSize"] > 8)


def predict(coefficients, columns):
    return columns["features"] @ coefficients[:2] + coefficients[2]


def predict_twice(coefficients, columns):
    return numpy.c_[predict(coefficients, columns), predict(coefficients, columns)]


def main(directory):
    spark = SparkSession.builder.getOrCreate()
    rows = [(float(n % 17), float(n % 5), 2.0 * (n % 17) - 3.0 * (n % 5) + 1.0) for n in range(200)]
    frame = spark.createDataFrame(rows, ["a", "b", "label"]).repartition(3)
    estimator = Estimator(trainFunction=train, predictFunction=predict, numWorkers=2, framework="generic", epochs=2)
    estimator.setBatchSize(16)
    vectors = VectorAssembler(inputCols=["a", "b"], outputCol="features")
    pipeline, evaluator, said = Pipeline(stages=[vectors, estimator]), RegressionEvaluator(), {}
    model = pipeline.fit(frame)
    predicted = model.transform(frame)
    said["columns"], said["rows"], said["error"] = predicted.columns, predicted.count(), evaluator.evaluate(predicted)
    twice = model.stages[-1].copy().setPredictFunction(predict_twice).setPredictionType("array<double>")
    said["vectors"] = all(
        len(row.prediction) == 2 and abs(row.prediction[1] - row.label) < 1e-9
        for row in twice.transform(vectors.transform(frame)).collect()
    )
    model.write().overwrite().save(f"{directory}/model")
    said["error when loaded"] = evaluator.evaluate(PipelineModel.load(f"{directory}/model").transform(frame))
    estimator.write().overwrite().save(f"{directory}/estimator")
    loaded = Estimator.load(f"{directory}/estimator")
    said["loaded"] = [loaded.getOrDefault("numWorkers"), loaded.getOrDefault("trainFunction") is not None]
    grid = ParamGridBuilder().addGrid(estimator.batchSize, [8, 16]).build()
    validator = CrossValidator(estimator=pipeline, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2)
    said["errors by batch size"] = validator.fit(frame).avgMetrics
    try:
        estimator.fit(frame)
    except Exception as error:
        said["no such column"] = str(error)
    print(f"SAID {json.dumps(said)}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
