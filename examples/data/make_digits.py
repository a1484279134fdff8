"""Writes the handwritten digits as CSV parts: test/ has 360 rows in one part, train/ the other 1,437 in eight.

The parts are in the repository; this only shows how they were made, and makes them again byte for byte:

    python make_digits.py [DIRECTORY]        # needs scikit-learn, default directory: digits, beside this file
"""

import random
import sys
from pathlib import Path

from sklearn.datasets import load_digits

SEED = 1998  # the year the set was published
TEST_ROWS = 360
TRAIN_PARTS = 8


def rows() -> list[str]:
    """Every image as one line, `label,pixel,...,pixel`: 64 pixels of 0..16, row by row; shuffled."""
    digits = load_digits()
    labelled = zip(digits.target, digits.data, strict=True)
    lines = [",".join(str(int(number)) for number in (label, *pixels)) for label, pixels in labelled]
    random.Random(SEED).shuffle(lines)  # noqa: S311 - for an even mix, not for a secret
    return lines


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="ascii", newline="\n")
    print(f"{path}: {len(lines)} rows")


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "digits"
    lines = rows()
    train = lines[TEST_ROWS:]
    write(directory / "test" / "part-00000.csv", lines[:TEST_ROWS])
    for part in range(TRAIN_PARTS):
        write(directory / "train" / f"part-{part:05d}.csv", train[part::TRAIN_PARTS])


if __name__ == "__main__":
    main()
