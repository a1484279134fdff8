"""Loads the model that train.py saved, prints its test accuracy, and fails when that is below 0.9.

python check.py MODEL_DIRECTORY [TEST_DIRECTORY]
"""

import sys
from pathlib import Path

import keras
import numpy as np

LEAST = 0.9
TEST = Path(__file__).parent.parent / "data" / "digits" / "test"


def main() -> int:
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else TEST
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(directory.glob("*.csv"))])
    model = keras.saving.load_model(Path(sys.argv[1]) / "digits.keras")
    guesses = np.argmax(model.predict(rows[:, 1:], verbose=0), axis=1)
    accuracy = np.mean(guesses == rows[:, 0])
    print(f"test accuracy {accuracy:.4f} on {len(rows)} images")
    return 0 if accuracy >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
