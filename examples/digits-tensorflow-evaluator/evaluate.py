"""Tests the model of each epoch as it appears, and ends after the last one. It talks to nobody."""

import argparse
import time
from pathlib import Path

import keras
from train import read, shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", default="test", help="directory with the CSV files to test on")
    parser.add_argument("--evaluations", default="evaluations", help="directory for the results")
    options = parser.parse_args()
    pixels, labels = read(options.test)
    Path(options.evaluations).mkdir(exist_ok=True)
    seen, last = set(), False
    with (Path(options.evaluations) / "accuracy.csv").open("w") as results:
        while not last:
            last = (shared() / "done").exists()
            for path in sorted(set(shared().glob("epoch-*.keras")) - seen):
                seen.add(path)
                _, accuracy = keras.saving.load_model(path).evaluate(pixels, labels, verbose=0)
                print(f"{path.stem}: test accuracy {accuracy:.4f}", flush=True)
                results.write(f"{int(path.stem[6:])},{accuracy:.4f}\n")
            time.sleep(0.2)


if __name__ == "__main__":
    main()
