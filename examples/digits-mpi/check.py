"""Loads the model that train.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import numpy as np
from train import accuracy, read

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    test = read(sys.argv[2] if len(sys.argv) > 2 else str(TEST))
    with np.load(Path(sys.argv[1]) / "model.npz") as saved:
        reached = accuracy(saved["weights"], *test)
    print(f"test accuracy {reached:.4f} on {len(test[1])} images")
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
