"""Handwritten digits with XGBoost: boosted trees from rows that no process has all of.

DMLC_TRACKER_URI and DMLC_TRACKER_PORT say where the workers meet, DMLC_TASK_ID which one this is. Each worker reads
the CSV files in its own --data directory; histograms are summed over all workers, so that all grow the same trees. Rank
0 tests and saves the model.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import xgboost as xgb
from xgboost import collective


def read(directory: str) -> xgb.DMatrix:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return xgb.DMatrix(rows[:, 1:], rows[:, 0], nthread=1)


def accuracy(model: xgb.Booster, test: xgb.DMatrix) -> float:
    return float(np.mean(model.predict(test) == test.get_label()))


class Progress(xgb.callback.TrainingCallback):
    """One line a round on rank 0; how far this worker is goes to its standard error."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
        error = evals_log["train"]["merror"][-1]  # over all workers' rows
        if collective.get_rank() == 0:
            print(f"round {epoch + 1}: train accuracy {1 - error:.4f}", flush=True)
        print(f"reporter progress:{(epoch + 1) / self.rounds:.2f}", file=sys.stderr, flush=True)
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this worker trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=0.4)
    options = parser.parse_args()
    settings = {
        "objective": "multi:softmax",
        "num_class": 10,
        "eval_metric": "merror",
        "tree_method": "hist",
        "max_depth": options.depth,
        "eta": options.learning_rate,
        "nthread": 1,
    }
    meeting = {name: os.environ[name.upper()] for name in ("dmlc_tracker_uri", "dmlc_task_id")}
    with collective.CommunicatorContext(**meeting, dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"])):
        mine = read(options.data)
        print(f"rank {collective.get_rank()} of {collective.get_world_size()}: {mine.num_row()} rows", flush=True)
        progress = [Progress(options.rounds)]
        trained = xgb.train(
            settings, mine, options.rounds, evals=[(mine, "train")], callbacks=progress, verbose_eval=False
        )
        rank = collective.get_rank()
    if rank == 0:  # outside the collective, in which reading rows is an affair of all workers
        Path(options.model).mkdir(parents=True, exist_ok=True)
        trained.save_model(Path(options.model) / "model.ubj")
        print(f"model saved in {options.model}, test accuracy {accuracy(trained, read(options.test)):.4f}", flush=True)


if __name__ == "__main__":
    main()
