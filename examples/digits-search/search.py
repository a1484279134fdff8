"""Handwritten digits with scikit-learn: one search of settings, in as many independent tasks as there are.

Each task tries every HOWDAH_REPLICAS-th setting, from its HOWDAH_INDEX on, and writes what it found into a file of its
own in HOWDAH_CHECKPOINT_DIR, a directory that all tasks reach; one that is started again goes on where it was.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import fsspec
import numpy as np
from sklearn.model_selection import ParameterGrid, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

SETTINGS = list(ParameterGrid({"C": [0.1, 1, 10], "gamma": [0.001, 0.005, 0.02, 0.1]}))


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return rows[:, 1:], rows[:, 0]


def classifier(settings: dict[str, float]):
    return make_pipeline(StandardScaler(), SVC(**settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files to search on")
    options = parser.parse_args()
    shared, directory = fsspec.core.url_to_fs(os.environ["HOWDAH_CHECKPOINT_DIR"])
    index, count = int(os.environ["HOWDAH_INDEX"]), int(os.environ["HOWDAH_REPLICAS"])
    pixels, labels = read(options.data)
    file = f"{directory}/task-{index}.json"
    found = json.loads(shared.cat_file(file)) if shared.exists(file) else []
    mine = SETTINGS[index::count]
    print(f"task {index} of {count}: {len(mine)} of {len(SETTINGS)} settings, {len(found)} of them tried", flush=True)
    for settings in mine[len(found) :]:
        score = float(cross_val_score(classifier(settings), pixels, labels, cv=3).mean())
        found.append({"settings": settings, "score": score})
        shared.makedirs(directory, exist_ok=True)
        shared.pipe_file(file, json.dumps(found).encode())
        print(f"{settings}: {score:.4f}", flush=True)
        print(f"reporter progress:{len(found) / len(mine):.2f}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
