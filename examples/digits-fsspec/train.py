"""Handwritten digits by ridge regression, whose sums need no order: each task sums its own files, and saves the sums.

The files are read where they are, in pieces, by fsspec: INPUT_FILE_LIST_FILE names a JSON file {"train": [uri, ...]}.
On a cluster HADOOP_CONF_DIR is set to the configuration that knows what hdfs:// names mean.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np

BLOCK = 4 << 20


def batches(uri: str) -> Iterator[np.ndarray]:
    """Rows `digit, 64 values 0..16`, a block of the file at a time: none has to fit into memory.

    HDFS reads are quick when they are large: a megabyte or more.
    """
    with fsspec.open(uri, "rb") as file:
        rest = b""
        while block := file.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            if lines:
                yield np.loadtxt(lines, delimiter=",", ndmin=2)
        if rest:
            yield np.loadtxt([rest], delimiter=",", ndmin=2)


def features(rows: np.ndarray) -> np.ndarray:
    """The values and their pairwise products along the lines of the image, and one."""
    x = rows[:, 1:] / 16
    return np.hstack([x, x[:, 1:] * x[:, :-1], x[:, 8:] * x[:, :-8], np.ones((len(x), 1))])


def main() -> None:
    uris = json.loads(Path(os.environ["INPUT_FILE_LIST_FILE"]).read_text())["train"]
    products = targets = 0
    count = 0
    for uri in uris:
        for rows in batches(uri):
            x, digits = features(rows), rows[:, 0].astype(int)
            products = products + x.T @ x
            targets = targets + x.T @ np.eye(10)[digits]
            count += len(rows)
    Path("model").mkdir()
    np.savez("model/sums.npz", products=products, targets=targets)
    print(f"{os.environ['HOWDAH_TASK']}: {count} images of {len(uris)} files, read in place from {uris[0]} on")


if __name__ == "__main__":
    main()
