"""Gives a program's metrics to its experiment trackers, too, where HOWDAH_METRICS_TO names them.

A tracker gets the points that come while the program has a run of it. It is never imported here: a program with a run
has done so. Each has a thread of its own that sends the points, so that the program does not wait.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Optional

VARIABLE = "HOWDAH_METRICS_TO"


def _log_to_mlflow(mlflow: Any, name: str, value: float, step: Optional[int]) -> None:
    if mlflow.active_run() is not None:
        mlflow.log_metric(name, value, step=step, synchronous=False)


def _log_to_trackio(trackio: Any, name: str, value: float, step: Optional[int]) -> None:
    if trackio.context_vars.current_run.get() is not None:
        trackio.log({name: value}, step=step)


def _log_to_wandb(wandb: Any, name: str, value: float, step: Optional[int]) -> None:
    if wandb.run is not None:
        wandb.log({name: value}, step=step)


_LOG: Dict[str, Callable[[Any, str, float, Optional[int]], None]] = {
    "mlflow": _log_to_mlflow,
    "trackio": _log_to_trackio,
    "wandb": _log_to_wandb,
}
_warned = False


def add(name: str, value: float, step: Optional[int]) -> None:
    """Give a point to the chosen trackers of which the program has a run."""
    for tracker in os.environ.get(VARIABLE, "").replace(",", " ").split():
        try:
            if tracker not in _LOG:
                raise ValueError(f"{VARIABLE} takes {', '.join(_LOG)}")
            if tracker in sys.modules:
                _LOG[tracker](sys.modules[tracker], name, value, step)
        except Exception as error:  # whatever a library does, the program goes on
            _warn(tracker, error)


def _warn(tracker: str, error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        sys.stderr.write(f"[howdah.program: metrics do not reach {tracker}: {error}]\n")
