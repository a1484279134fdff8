"""Handwritten digits with TensorFlow 2 and parameter servers.

Every role runs this one program; TF_CONFIG says who a process is. A worker or ps serves until it is stopped. The chief
keeps the variables on the ps, sends steps to the workers and doesn't wait for one worker before it feeds the next.
Each worker reads the CSV files in its own --data directory; the chief needs only --test, and saves the model.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

PIXELS, CLASSES, HIDDEN = 64, 10, 64


class Classifier(tf.Module):
    """Pixels of 0..16 in, one score per digit out; one hidden layer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = np.random.default_rng(seed)
        self.hidden = tf.Variable(draw.normal(0, PIXELS**-0.5, (PIXELS, HIDDEN)), dtype=tf.float32, name="hidden")
        self.hidden_bias = tf.Variable(tf.zeros([HIDDEN]), name="hidden_bias")
        self.output = tf.Variable(draw.normal(0, HIDDEN**-0.5, (HIDDEN, CLASSES)), dtype=tf.float32, name="output")
        self.output_bias = tf.Variable(tf.zeros([CLASSES]), name="output_bias")

    @tf.function(input_signature=[tf.TensorSpec([None, PIXELS], tf.float32)])
    def __call__(self, pixels: tf.Tensor) -> tf.Tensor:
        hidden = tf.nn.relu(pixels / 16.0 @ self.hidden + self.hidden_bias)
        return hidden @ self.output + self.output_bias


def parse(lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    numbers = tf.stack(tf.io.decode_csv(lines, [0.0] * (PIXELS + 1)), axis=1)
    return numbers[:, 1:], tf.cast(numbers[:, 0], tf.int32)


def batches(directory: str, size: int, seed: int) -> tf.data.Dataset:
    """Endless shuffled batches from the CSV files that lie in `directory` where this dataset runs: on a worker."""
    files = tf.data.Dataset.list_files(f"{directory}/*.csv", shuffle=False)
    return tf.data.TextLineDataset(files).shuffle(2000, seed=seed).repeat().batch(size).map(parse)


def serve(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver) -> None:
    """Lends this process to the chief, for good."""
    # A worker runs several operations that wait for other processes: with a thread per core it would stand still.
    threads = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=8)
    role, index = resolver.task_type, resolver.task_id
    server = tf.distribute.Server(resolver.cluster_spec(), role, index, protocol="grpc", config=threads)
    print(f"{role}:{index} serves at {server.target}", flush=True)
    server.join()


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return rows[:, 1:].astype(np.float32), rows[:, 0].astype(np.int32)


def accuracy(model: Classifier, pixels: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(model(tf.constant(pixels)), axis=1) == labels))


class Board:
    """Event files. `tf.summary.scalar` and `.histogram` write the same, and need TensorBoard's package for it."""

    def __init__(self, directory: str) -> None:
        self._writer = tf.summary.create_file_writer(directory)

    def write(self, epoch: int, model: Classifier, scalars: dict[str, float]) -> None:
        with self._writer.as_default(step=epoch):
            for tag, value in scalars.items():
                tf.summary.write(tag, tf.constant(value, tf.float32), metadata=of_plugin("scalars"))
            for variable in model.trainable_variables:
                counts, edges = np.histogram(variable.numpy(), bins=30)
                buckets = tf.constant(np.stack([edges[:-1], edges[1:], counts], axis=1), tf.float64)
                tf.summary.write(variable.name, buckets, metadata=of_plugin("histograms"))
        self._writer.flush()


def of_plugin(name: str) -> tf.compat.v1.SummaryMetadata:
    return tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": name})


def train(options: argparse.Namespace, resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver) -> None:
    test_pixels, test_labels = read(options.test)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Classifier(options.seed)
    feed = iter(coordinator.create_per_worker_dataset(lambda: batches(options.data, options.batch, options.seed)))

    @tf.function
    def step(feed: tf.data.Iterator) -> tf.Tensor:
        def on_worker(pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                scores = model(pixels)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
            variables = model.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(options.learning_rate * gradient)
            return loss

        return strategy.run(on_worker, args=next(feed))

    board = Board(options.board)
    for epoch in range(1, options.epochs + 1):
        losses = [coordinator.schedule(step, args=(feed,)) for _ in range(options.steps)]
        coordinator.join()
        loss = np.mean([loss.fetch() for loss in losses])
        tested = accuracy(model, test_pixels, test_labels)
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {tested:.4f}", flush=True)
        board.write(epoch, model, {"loss": loss, "test_accuracy": tested})
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    save(model, options.model)


def save(model: Classifier, directory: str) -> None:
    """Saves a copy that needs no parameter server."""
    copy = Classifier(seed=0)
    for mine, trained in zip(copy.variables, model.variables, strict=True):
        mine.assign(trained.numpy())
    tf.saved_model.save(copy, directory)
    print(f"model saved in {directory}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files a worker trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files the chief tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument(
        "--board", default=os.environ.get("HOWDAH_BOARD_DIR", "board"), help="directory for event files"
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=45, help="steps per epoch, all workers together")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        train(options, resolver)


if __name__ == "__main__":
    main()
