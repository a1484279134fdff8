"""Requests to the helper processes that make pre-flight checks (see `howdah.wire.helper_main`)."""

from __future__ import annotations

from typing import Mapping

from howdah.spec.values import dataclass
from howdah.wire.messages import CheckOrder, PairOrder


@dataclass(frozen=True)
class LocalChecksRequest:
    """Make the checks that a container makes alone."""

    order: CheckOrder
    """The checks."""
    directory: str
    """The task's working directory."""
    memory_mib: int
    """Memory that the job asks for."""
    gpus: int
    """Number of GPUs that the job asks for."""
    python: str
    """The job's Python; "" when it has none."""
    variables: Mapping[str, str]
    """The program's environment."""


@dataclass(frozen=True)
class PairExchangeRequest:
    """Exchange data with one partner after another."""

    order: PairOrder
    """The partners."""
    task: str
    """This task, `worker:1`."""
    listener: int
    """Descriptor of the bound socket on which this task listens."""
    gpus: int
    """Number of GPUs that the job asks for."""
    python: str
    """The job's Python; "" when it has none."""
    variables: Mapping[str, str]
    """The program's environment."""
