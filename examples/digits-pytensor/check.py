"""Loads the model that train.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import numpy as np

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else TEST
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(directory.glob("*.csv"))])
    first, first_bias, last, last_bias = np.load(Path(sys.argv[1]) / "model.npz").values()
    answers = (np.tanh(rows[:, 1:] / 16 @ first + first_bias) @ last + last_bias).argmax(axis=1)
    reached = (answers == rows[:, 0]).mean()
    print(f"test accuracy {reached:.4f} on {len(rows)} images")
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
