"""Loads the model that train.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import xgboost as xgb
from train import accuracy, read

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    test = read(sys.argv[2] if len(sys.argv) > 2 else str(TEST))
    reached = accuracy(xgb.Booster(model_file=Path(sys.argv[1]) / "model.ubj"), test)
    print(f"test accuracy {reached:.4f} on {test.num_row()} images")
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
