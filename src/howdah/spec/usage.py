"""`Usage`: a sample of the resources that a task uses, in statuses, in the event log and in the job's view."""

from __future__ import annotations

import dataclasses
from typing import Optional, Tuple

from howdah.spec.gpu import Gpu
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class Usage:
    """Resources that the program's process tree uses, and how far the program is."""

    memory_mib: float = 0.0
    """Resident memory now."""
    peak_mib: float = 0.0
    """Highest resident memory so far."""
    cpu: float = 0.0
    """Cores in use now."""
    progress: Optional[float] = None
    """The program's own progress, 0 to 1."""
    streamed_bytes: int = 0
    """Bytes of the input streams that the program was given so far."""
    local_bytes: int = 0
    """The part of `streamed_bytes` that is stored on this node."""
    log_bytes: int = 0
    """Bytes that the program has printed."""
    cpu_s: float = 0.0
    """CPU seconds since the program began."""
    waits: float = 0.0
    """Share (0 to 1) of the samples in which one of the processes waited for a disk."""
    read_mib: float = 0.0
    """MiB read from disks since the program began."""
    written_mib: float = 0.0
    """MiB written to disks since the program began."""
    received_mib: float = 0.0
    """MiB received by the network namespace since the program began."""
    sent_mib: float = 0.0
    """MiB sent by the network namespace since the program began."""
    read_mib_s: float = 0.0
    """MiB a second read from disks now."""
    written_mib_s: float = 0.0
    """MiB a second written to disks now."""
    received_mib_s: float = 0.0
    """MiB a second received now."""
    sent_mib_s: float = 0.0
    """MiB a second sent now."""
    network: str = ""
    """Whose network namespace is counted: the task's own (`task`), or its node's (`node`)."""
    gpus: Tuple[Gpu, ...] = ()
    """The last sample of the program's GPUs."""
    gpu_mean: Optional[float] = None
    """Mean use (0 to 1) of the GPUs since the program began."""
    starved_s: float = 0.0
    """Seconds for which the program waited for its input streams."""
    first_progress: float = 0.0
    """The first progress that the program reported."""
    first_at: float = 0.0
    """When the program reported its first progress, in epoch seconds."""

    def without_rates(self) -> Usage:
        """Return the sample as it is stored in the event log: rates per second are for the resource metrics alone."""
        return dataclasses.replace(self, read_mib_s=0.0, written_mib_s=0.0, received_mib_s=0.0, sent_mib_s=0.0)
