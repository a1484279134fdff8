"""Handwritten digits with Keras: after each epoch the model is put where the evaluator looks for it.

A model appears there whole, by a rename; the file `done` says that there will be no more.
"""

import argparse
import os
import sys
from pathlib import Path

import keras
import numpy as np


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return (rows[:, 1:] / 16).astype(np.float32), rows[:, 0].astype(np.int32)


def shared() -> Path:
    """This job's own part of the directory that worker and evaluator have in common."""
    return Path(os.environ["HOWDAH_CHECKPOINT_DIR"]) / os.environ["HOWDAH_JOB_ID"]


class Publish(keras.callbacks.Callback):
    def __init__(self, directory: Path, epochs: int) -> None:
        super().__init__()
        self.directory, self.epochs = directory, epochs

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        new = self.directory / "new.keras"
        self.model.save(new)
        new.rename(self.directory / f"epoch-{epoch + 1:03d}.keras")
        print(f"epoch {epoch + 1}: loss {(logs or {})['loss']:.4f}", flush=True)
        print(f"reporter progress:{(epoch + 1) / self.epochs:.2f}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files to train on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    keras.utils.set_random_seed(1)
    pixels, labels = read(options.data)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    directory = shared()
    directory.mkdir(parents=True, exist_ok=True)
    model.fit(pixels, labels, 32, options.epochs, verbose=0, callbacks=[Publish(directory, options.epochs)])
    (directory / "done").touch()
    Path(options.model).mkdir(parents=True, exist_ok=True)
    model.save(Path(options.model) / "model.keras")
    print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
