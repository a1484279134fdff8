"""Loads the model that train.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import keras
from train import read

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    pixels, labels = read(sys.argv[2] if len(sys.argv) > 2 else str(TEST))
    _, accuracy = keras.saving.load_model(Path(sys.argv[1]) / "model.keras").evaluate(pixels, labels, verbose=0)
    print(f"test accuracy {accuracy:.4f} on {len(labels)} images")
    return 0 if accuracy >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
