"""Gives a program's metrics to its experiment trackers, too, if HOWDAH_METRICS_TO names them.

A tracker gets the points that come while the program has a run of it. This module never imports a tracker: a program
with a run has done so. Weights & Biases and Trackio send points by threads of their own. MLflow's calls wait for its
server, so a thread of howdah's makes them, and its end waits for them no longer than for the master.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

VARIABLE = "HOWDAH_METRICS_TO"
STEP = "howdah_step"
"""The axis of the metrics in Weights & Biases, whose own steps only grow: a smaller one would lose the point."""


class MlflowPoint(NamedTuple):
    """A point that came while the program had a run of MLflow."""

    run_id: str
    name: str
    value: float
    step: int
    time: float
    """Unix seconds."""


class _SeenRun(NamedTuple):
    """A run, and the thread that has it: both MLflow and Trackio reveal the run only to this thread."""

    run: Any
    thread: int


_seen: Dict[str, _SeenRun] = {}
_next_steps: Dict[str, int] = {}
_warned: Set[str] = set()
_on_own_axis: Set[Any] = set()


def add(name: str, value: float, step: Optional[int], time: float) -> Optional[MlflowPoint]:
    """Give a point to the chosen trackers that have a run in the program, and return the point for `send`, if there is
    one. A point without a step gets the next number of its metric."""
    chosen = os.environ.get(VARIABLE, "").replace(",", " ").split()
    if not chosen:
        return None
    if step is None:
        step = _next_steps.get(name, 0)
    _next_steps[name] = step + 1
    found = None
    for tracker in chosen:
        try:
            run = _run_of(tracker)
            if run is None:
                continue
            if tracker == "mlflow":
                found = MlflowPoint(run.info.run_id, name, value, step, time)
            elif tracker == "trackio":
                run.log({name: value}, step=step)
            else:
                _log_to_wandb(run, name, value, step)
        except Exception as error:  # whatever a library does, the program goes on
            _warn(tracker, error)
    return found


def send(points: List[MlflowPoint]) -> None:
    """Send points to MLflow, and wait for its server."""
    mlflow = sys.modules["mlflow"]
    for run_id in dict.fromkeys(point.run_id for point in points):
        of_run = [point for point in points if point.run_id == run_id]
        try:
            metric = mlflow.entities.Metric
            metrics = [metric(each.name, each.value, int(1000 * each.time), each.step) for each in of_run]
            mlflow.MlflowClient().log_batch(run_id, metrics=metrics)
        except Exception as error:  # no server, no right, no such run: the program goes on
            _warn("mlflow", error)


def _run_of(tracker: str) -> Any:
    """Return the run that the program has of a tracker, in whatever thread; None if there is none."""
    if tracker not in _ACTIVE_RUN:
        raise ValueError(f"{VARIABLE} takes {', '.join(_ACTIVE_RUN)}")
    if tracker not in sys.modules:
        return None
    run, thread = _ACTIVE_RUN[tracker](sys.modules[tracker]), threading.get_ident()
    if run is not None:
        _seen[tracker] = _SeenRun(run, thread)
    elif tracker in _seen and _seen[tracker].thread == thread:
        del _seen[tracker]  # it has ended
    return _seen[tracker].run if tracker in _seen else None


_ACTIVE_RUN: Dict[str, Callable[[Any], Any]] = {
    "mlflow": lambda mlflow: mlflow.active_run(),
    "trackio": lambda trackio: trackio.context_vars.current_run.get(),
    "wandb": lambda wandb: wandb.run,
}


def _log_to_wandb(run: Any, name: str, value: float, step: int) -> None:
    if (run.id, name) not in _on_own_axis:
        run.define_metric(name, step_metric=STEP)
        _on_own_axis.add((run.id, name))
    run.log({name: value, STEP: step})


def _warn(tracker: str, error: Exception) -> None:
    if tracker not in _warned:
        _warned.add(tracker)
        sys.stderr.write(f"[howdah.program: metrics do not reach {tracker}: {error}]\n")
