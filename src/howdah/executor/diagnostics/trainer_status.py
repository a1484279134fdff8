"""Reads the status that a training library reports of its run, in the form of Kubeflow Trainer's TrainJobs (v2.2).

HuggingFace's Trainer (transformers' KubeflowCallback, rank 0 alone) sends it at the start, at the end, and after a step
at most every 5 seconds; Kubeflow's SDK (update_trainjob_status) sends it when a program calls it.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any, Dict, Mapping, Optional

from howdah.spec.values import dataclass
from howdah.wire.program_protocol import MAX_KEY, MAX_POINTS

_STEP, _STEPS = "current_step", "total_steps"
_POSITION = (_STEP, _STEPS, "current_epoch")
"""Metrics of the Trainer that say how far it has come, and nothing about the model."""
_MAX_STEP = 1 << 53


@dataclass(frozen=True)
class TrainerStatus:
    """The content of one report."""

    progress: Optional[float] = None
    """The share of the run that is done, 0 to 1; None when the report does not say it."""
    step: Optional[int] = None
    """The training step of the report; None when the report does not say it."""
    steps: Optional[int] = None
    """The training steps of the whole run; None when the report does not say it."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The numbers among the metrics; infinite ones and NaN among them."""


def parse(body: bytes) -> TrainerStatus:
    """Read the body of a report.

    Raises:
        ValueError: the body is no such report; the message says what is wrong with it in one line.
    """
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the body is no JSON") from None
    status = report.get("trainerStatus") if isinstance(report, dict) else None
    if not isinstance(status, dict):
        raise ValueError("trainerStatus: must be an object")
    numbers = _numbers(status.get("metrics"))
    step, steps = _whole(numbers.get(_STEP)), _whole(numbers.get(_STEPS))
    percentage = status.get("progressPercentage")
    if percentage is not None and not (_is_number(percentage) and 0 <= percentage <= 100):
        raise ValueError("trainerStatus.progressPercentage: must be a number from 0 to 100")
    progress = None if percentage is None else percentage / 100
    if step is not None and steps and step <= steps and progress != 1.0:
        progress = step / steps  # a whole percentage of a long run changes seldom
    metrics = {name: number for name, number in numbers.items() if name not in _POSITION}
    return TrainerStatus(progress=progress, step=step, steps=steps, metrics=metrics)


def _numbers(metrics: Any) -> Dict[str, float]:
    """Return the metrics that are numbers: Kubeflow takes any text as a value."""
    numbers: Dict[str, float] = {}
    if metrics is None:
        return numbers
    if not isinstance(metrics, list) or len(metrics) > MAX_POINTS:
        raise ValueError(f"trainerStatus.metrics: must be a list of at most {MAX_POINTS}")
    for metric in metrics:
        name, value = (metric.get("name"), metric.get("value")) if isinstance(metric, dict) else (None, None)
        if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "surrogatepass")) <= MAX_KEY:
            raise ValueError(f"trainerStatus.metrics: a name must be a text of 1 to {MAX_KEY} bytes")
        if not (isinstance(value, str) or _is_number(value)):
            raise ValueError("trainerStatus.metrics: a value must be a text")
        try:
            numbers[name] = float(str(value))
        except (ValueError, OverflowError):
            continue
    return numbers


def _whole(number: Optional[float]) -> Optional[int]:
    return int(number) if number is not None and 0 <= number < _MAX_STEP else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
