"""Loads the checkpoint that the training saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else TEST
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(directory.glob("*.csv"))])
    path = tf.train.latest_checkpoint(sys.argv[1])
    if path is None:
        sys.exit(f"no checkpoint in {sys.argv[1]}")
    saved = tf.train.load_checkpoint(path).get_tensor
    hidden = np.maximum(rows[:, 1:] / 16.0 @ saved("hidden/weights") + saved("hidden/bias"), 0)
    guesses = np.argmax(hidden @ saved("output/weights") + saved("output/bias"), axis=1)
    accuracy = np.mean(guesses == rows[:, 0])
    print(f"test accuracy {accuracy:.4f} on {len(rows)} images")
    return 0 if accuracy >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
