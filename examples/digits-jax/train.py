"""Handwritten digits with JAX on several processes: a batch is one array that lies on the devices of all of them.

jax.distributed.initialize() finds the other processes by itself. Each reads the CSV files in its own --data directory,
and uses as many rows an epoch as the process that has the fewest. Process 0 tests after each epoch, and saves the
model.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

PIXELS, CLASSES, HIDDEN = 64, 10, 64


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return (rows[:, 1:] / 16).astype(np.float32), rows[:, 0].astype(np.int32)


def classifier(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        "hidden": draw.normal(0, PIXELS**-0.5, (PIXELS, HIDDEN)).astype(np.float32),
        "hidden_bias": np.zeros(HIDDEN, np.float32),
        "output": draw.normal(0, HIDDEN**-0.5, (HIDDEN, CLASSES)).astype(np.float32),
        "output_bias": np.zeros(CLASSES, np.float32),
    }


def scores(model: dict[str, jax.Array], pixels: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(pixels @ model["hidden"] + model["hidden_bias"])
    return hidden @ model["output"] + model["output_bias"]


def loss(model: dict[str, jax.Array], pixels: jax.Array, labels: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores(model, pixels)), labels[:, None], axis=1)
    return -chosen.mean()


@partial(jax.jit, donate_argnums=0)
def step(model: dict[str, jax.Array], pixels: jax.Array, labels: jax.Array, rate: float) -> tuple:
    """One step on a batch that is spread over all processes: its mean, and so the gradient, is everybody's."""
    value, gradient = jax.value_and_grad(loss)(model, pixels, labels)
    return jax.tree.map(lambda weights, slope: weights - rate * slope, model, gradient), value


def accuracy(model: dict[str, np.ndarray], pixels: np.ndarray, labels: np.ndarray) -> float:
    """On this process alone."""
    return float(np.mean(np.argmax(scores(model, pixels), axis=1) == labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this process trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that process 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16, help="rows per process and step")
    parser.add_argument("--learning-rate", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    jax.distributed.initialize()
    rank, count = jax.process_index(), jax.process_count()
    mesh = Mesh(jax.devices(), "rows")
    by_rows, everywhere = NamedSharding(mesh, PartitionSpec("rows")), NamedSharding(mesh, PartitionSpec())
    pixels, labels = read(options.data)
    rows = int(multihost_utils.process_allgather(np.array(len(labels))).min())
    print(f"process {rank} of {count}: {len(labels)} rows, {rows} an epoch; {jax.devices()}", flush=True)
    model = jax.tree.map(
        lambda weights: jax.make_array_from_process_local_data(everywhere, weights), classifier(options.seed)
    )
    order = np.random.default_rng(options.seed + rank)
    test = read(options.test) if rank == 0 else None
    for epoch in range(1, options.epochs + 1):
        shuffled = order.permutation(len(labels))[:rows]
        for start in range(0, rows - options.batch + 1, options.batch):
            mine = shuffled[start : start + options.batch]
            batch = (jax.make_array_from_process_local_data(by_rows, part[mine]) for part in (pixels, labels))
            model, value = step(model, *batch, options.learning_rate)
        here = jax.tree.map(lambda weights: np.asarray(weights.addressable_data(0)), model)
        tested = f", test accuracy {accuracy(here, *test):.4f}" if test else ""
        print(f"epoch {epoch}: loss {float(value):.4f}{tested}", flush=True)
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    if rank == 0:
        Path(options.model).mkdir(parents=True, exist_ok=True)
        np.savez(Path(options.model) / "model.npz", **here)
        print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
