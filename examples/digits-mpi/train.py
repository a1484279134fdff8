"""Handwritten digits by logistic regression over MPI: each rank has its own rows, and gradients are summed.

MPI.COMM_WORLD knows all ranks. Each reads the CSV files in its own --data directory; ranks may have different numbers
of rows. Rank 0 tests after each tenth step, and saves the model.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

PIXELS, CLASSES = 64, 10


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels as floats of 0..1 and a 1 for the bias, shape (rows, 65), and labels, shape (rows,)."""
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return np.hstack([rows[:, 1:] / 16, np.ones((len(rows), 1))]), rows[:, 0].astype(np.int64)


def gradient(weights: np.ndarray, pixels: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
    """Of the summed cross entropy of these rows, and that itself."""
    scores = pixels @ weights
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    mine = np.arange(len(labels))
    loss = -np.log(chances[mine, labels]).sum()
    chances[mine, labels] -= 1
    return pixels.T @ chances, float(loss)


def accuracy(weights: np.ndarray, pixels: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(pixels @ weights, axis=1) == labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this rank trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=2.0)
    options = parser.parse_args()
    from mpi4py import MPI  # its import joins the others, which check.py does not want

    world = MPI.COMM_WORLD
    pixels, labels = read(options.data)
    rows = world.allreduce(len(labels))
    print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}: {len(labels)} of {rows} rows", flush=True)
    test = read(options.test) if world.rank == 0 else None
    weights, slope = np.zeros((PIXELS + 1, CLASSES)), np.empty((PIXELS + 1, CLASSES))
    for step in range(1, options.steps + 1):
        mine, loss = gradient(weights, pixels, labels)
        world.Allreduce(mine, slope)
        loss = world.allreduce(loss)
        weights -= options.learning_rate * slope / rows
        if step % 10 == 0:
            tested = f", test accuracy {accuracy(weights, *test):.4f}" if test else ""
            print(f"step {step}: loss {loss / rows:.4f}{tested}", flush=True)
            print(f"reporter progress:{step / options.steps:.2f}", file=sys.stderr, flush=True)
    if world.rank == 0:
        Path(options.model).mkdir(parents=True, exist_ok=True)
        np.savez(Path(options.model) / "model.npz", weights=weights)
        print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
