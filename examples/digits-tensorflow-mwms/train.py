"""Handwritten digits with TensorFlow 2's MultiWorkerMirroredStrategy: gradients are summed.

Every worker holds the model; TF_CONFIG says who a process is. Each worker reads the CSV files in its own --data
directory; workers may have different numbers of rows, as each draws endless batches from its own. Worker 0, the
chief, saves the model.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return rows[:, 1:].astype(np.float32), rows[:, 0].astype(np.int32)


def classifier() -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input([64]), layers.Rescaling(1 / 16), layers.Dense(64, activation="relu"), layers.Dense(10)]
    )


def train(
    options: argparse.Namespace, strategy: tf.distribute.Strategy, model: keras.Model, mine: tf.data.Dataset
) -> None:
    workers = strategy.num_replicas_in_sync
    test_pixels, test_labels = read(options.test)

    def on_replica(pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(pixels, training=True))
            loss = tf.reduce_mean(losses) / workers  # the gradients of all workers are added up
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica, args=batch), axis=None)

    feed = iter(strategy.distribute_datasets_from_function(lambda _: mine))
    for epoch in range(1, options.epochs + 1):
        loss = np.mean([step(next(feed)) for _ in range(options.steps)])
        accuracy = np.mean(np.argmax(model(test_pixels), axis=1) == test_labels)
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracy:.4f}", flush=True)
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)


def save(model: keras.Model, directory: str, chief: bool) -> None:
    """Every worker must save, because saving may talk to the others; only the chief's file is kept."""
    with tempfile.TemporaryDirectory() as elsewhere:
        target = Path(directory if chief else elsewhere)
        target.mkdir(parents=True, exist_ok=True)
        model.save(target / "digits.keras")
    if chief:
        print(f"model saved in {directory}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this worker trains on")
    parser.add_argument(
        "--test", default="test", help="directory with the CSV files for testing, the same on each worker"
    )
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=23, help="steps per epoch")
    parser.add_argument("--batch", type=int, default=32, help="rows per worker and step")
    parser.add_argument("--learning-rate", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    print(f"{task['type']}:{task['index']} of {strategy.num_replicas_in_sync}", flush=True)
    with strategy.scope():
        model = classifier()
        model.compile(optimizer=keras.optimizers.Adam(options.learning_rate))
        model.optimizer.build(model.trainable_variables)
    rows = tf.data.Dataset.from_tensor_slices(read(options.data))
    mine = rows.shuffle(2000, seed=options.seed + task["index"]).repeat().batch(options.batch)
    train(options, strategy, model, mine)
    save(model, options.model, chief=task["type"] == "chief" or task["index"] == 0)


if __name__ == "__main__":
    main()
