"""Loads the model that search.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import joblib
from search import read

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    pixels, labels = read(sys.argv[2] if len(sys.argv) > 2 else str(TEST))
    reached = joblib.load(Path(sys.argv[1]) / "model.joblib").score(pixels, labels)
    print(f"test accuracy {reached:.4f} on {len(labels)} images")
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
