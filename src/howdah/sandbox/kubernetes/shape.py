"""Describes a Kubernetes sandbox: `KubernetesShape` is what a user asks for."""

from __future__ import annotations

from howdah.errors import SpecError
from howdah.sandbox.sizes import size_mistakes
from howdah.spec.values import dataclass

MAX_NODES = 20


@dataclass(frozen=True)
class KubernetesShape:
    """The specification by the user; two sandboxes of one shape differ only in directory and addresses."""

    nodes: int = 2
    """The number of nodes."""
    memory_mib: int = 8192
    """Memory that each node offers, whatever this machine has."""
    vcores: int = 8
    """Cores that each node offers, whatever this machine has."""
    gpus: int = 4
    """GPUs that each node offers: counted, not real."""
    expiry_s: int = 15
    """Seconds of silence of its kubelet after which a node is lost."""


def validate(shape: KubernetesShape) -> KubernetesShape:
    """Return the shape.

    Raises:
        SpecError: a field has a wrong value; the message names all of them.
    """
    # A kubelet renews its lease each 2.5 s.
    minimum = {"nodes": 1, "memory_mib": 512, "vcores": 1, "gpus": 0, "expiry_s": 10}
    wrong = size_mistakes(shape, minimum, {"nodes": MAX_NODES})
    if wrong:
        raise SpecError(wrong)
    return shape
