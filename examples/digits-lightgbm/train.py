"""Handwritten digits with LightGBM: boosted trees from rows that no process has all of.

LIGHTGBM_MACHINES lists all workers as address:port, LIGHTGBM_LOCAL_LISTEN_PORT is this one's port. Each worker reads
the CSV files in its own --data directory; all grow the same trees. Rank 0 tests and saves the model.
"""

import argparse
import os
import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return rows[:, 1:], rows[:, 0]


def accuracy(model: lgb.Booster, pixels: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(model.predict(pixels).argmax(axis=1) == labels))


def report(round_: lgb.callback.CallbackEnv) -> None:
    if os.environ["LIGHTGBM_RANK"] == "0":
        print(f"round {round_.iteration + 1}: train error {round_.evaluation_result_list[0][2]:.4f}", flush=True)
    print(f"reporter progress:{(round_.iteration + 1) / round_.end_iteration:.2f}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this worker trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.2)
    options = parser.parse_args()
    settings = {
        "objective": "multiclass",
        "num_class": 10,
        "metric": "multi_error",
        "learning_rate": options.learning_rate,
        "num_leaves": 15,
        "num_threads": 1,
        "verbosity": 0,
        "tree_learner": "data",
        "pre_partition": True,  # each worker has its own rows, not all of them
        "machines": os.environ["LIGHTGBM_MACHINES"],
        "num_machines": int(os.environ["LIGHTGBM_NUM_MACHINES"]),
        "local_listen_port": int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"]),
        "time_out": 1,  # minutes to wait for another worker
    }
    pixels, labels = read(options.data)
    rank = int(os.environ["LIGHTGBM_RANK"])
    print(f"rank {rank} of {settings['num_machines']}: {len(labels)} rows", flush=True)
    rows = lgb.Dataset(pixels, labels)
    model = lgb.train(settings, rows, options.rounds, valid_sets=[rows], valid_names=["train"], callbacks=[report])
    if rank == 0:
        Path(options.model).mkdir(parents=True, exist_ok=True)
        model.save_model(Path(options.model) / "model.txt")
        print(f"model saved in {options.model}, test accuracy {accuracy(model, *read(options.test)):.4f}", flush=True)


if __name__ == "__main__":
    main()
