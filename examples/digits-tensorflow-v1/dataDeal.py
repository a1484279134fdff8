"""Reads the digits: CSV lines of a label and 64 pixels of 0..16, from every file in a directory."""

import zlib
from pathlib import Path

import numpy as np

HOLD_OUT = 10  # one row of ten is kept out of training


def is_held_out(line: str) -> bool:
    """Says by the row's own bytes, so that a row stays on its side whichever worker it is dealt to."""
    return zlib.crc32(line.encode()) % HOLD_OUT == 0


def to_arrays(lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pixels as floats of 0..1, shape (rows, 64), and labels, shape (rows,)."""
    rows = np.array([line.split(",") for line in lines], dtype=np.float32).reshape(len(lines), 65)
    return rows[:, 1:] / 16.0, rows[:, 0].astype(np.int64)


class Digits:
    """The rows of one worker: `train` and `test`, each as (pixels, labels)."""

    def __init__(self, directory: str, seed: int) -> None:
        lines = [line for path in sorted(Path(directory).rglob("*.csv")) for line in path.read_text().splitlines()]
        self.train = to_arrays([line for line in lines if not is_held_out(line)])
        self.test = to_arrays([line for line in lines if is_held_out(line)])
        self._draw = np.random.default_rng(seed)

    def batches(self, size: int):
        """One epoch: every training row once, in a new order."""
        pixels, labels = self.train
        order = self._draw.permutation(len(labels))
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield pixels[chosen], labels[chosen]
