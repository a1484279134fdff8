"""Handwritten digits with Ray: one search of settings, whose trials run on the nodes of the job's own cluster.

The program is one that runs on any Ray cluster: `ray.init()` finds the one of the job.
"""

import argparse
from pathlib import Path

import joblib
import numpy as np
import ray
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


@ray.remote(num_cpus=1)
def score(settings: dict[str, float], pixels: np.ndarray, labels: np.ndarray) -> tuple[float, str]:
    """Return how good the settings are, and the node that found it."""
    reached = float(cross_val_score(classifier(settings), pixels, labels, cv=3).mean())
    return reached, ray.get_runtime_context().get_node_id()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files to search on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    options = parser.parse_args()
    ray.init()
    pixels, labels = read(options.data)
    shared = ray.put(pixels), ray.put(labels)
    waiting = {score.remote(settings, *shared): settings for settings in SETTINGS}
    found, nodes = [], set()
    while waiting:
        (done,), _ = ray.wait(list(waiting))
        settings = waiting.pop(done)
        reached, node = ray.get(done)
        nodes.add(node)
        found.append((reached, settings))
        print(f"{settings}: {reached:.4f}", flush=True)
    _, best = max(found, key=lambda each: each[0])
    print(f"{len(found)} settings, nodes used: {len(nodes)}; best {best}", flush=True)
    Path(options.model).mkdir(parents=True, exist_ok=True)
    joblib.dump(classifier(best).fit(pixels, labels), Path(options.model) / "model.joblib")
    print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
