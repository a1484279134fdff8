"""Measures the GPUs of a program by a helper process beside the executor; no helper runs where there are none."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.gpu.claims import count
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.usage import PERIOD_S
from howdah.spec.codec import decode
from howdah.spec.gpu import HARDWARE, Gpu
from howdah.spec.message import message
from howdah.wire.helper_messages import GpuSamplerRequest

_NAMES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class GpuMonitor:
    """Samples the GPUs that a program sees, from its start to `close`. `note` writes a line to the executor's log."""

    def __init__(self, loop: EventLoop, environment: Mapping[str, str], note: Callable[[str], None]) -> None:
        self.gpus: Tuple[Gpu, ...] = ()
        """The last sample; empty where nothing can be measured."""
        self._sum, self._count = 0.0, 0
        self._ecc: Dict[str, int] = {}
        self._note = note
        self._helper: Optional[HelperProcess] = None
        ids = visible_devices(environment)
        self._all_of_the_node = ids == ()
        if ids is not None and count(environment):
            argv, request = ("howdah.executor.gpu.sampler",), GpuSamplerRequest(ids, PERIOD_S)
            self._helper = HelperProcess(loop, argv, request, self._sampler_ended, self._sampled)

    @property
    def mean(self) -> Optional[float]:
        """Return the mean use (0..1) of all GPUs since the first sample."""
        return round(self._sum / self._count, 3) if self._count else None

    @property
    def fault(self) -> str:
        """Return the first failure of the GPUs' hardware while the program ran; "" when none is known.

        No failure is known of a program that may see all GPUs of its node, since it may use any of them.
        """
        return "" if self._all_of_the_node else find_hardware_fault(self.gpus, self._ecc)

    def close(self) -> None:
        """Stop sampling, because the program has ended; the samples that have arrived count."""
        if self._helper is not None:
            self._helper.read()
            self._helper.stop()
            self._helper = None

    def _sampled(self, message: Mapping[str, Any]) -> None:
        if "gpus" in message:
            self.gpus = tuple(decode(Gpu, gpu) for gpu in message["gpus"])
            for gpu in self.gpus:
                if gpu.ecc is not None:
                    self._ecc.setdefault(gpu.id, gpu.ecc)
            uses = [gpu.use for gpu in self.gpus if gpu.use is not None]
            self._sum, self._count = self._sum + sum(uses), self._count + len(uses)

    def _sampler_ended(self, problem: str) -> None:
        if self._helper is not None:
            self._note(problem)
        self._helper = None


def find_hardware_fault(gpus: Sequence[Gpu], ecc: Mapping[str, int]) -> str:
    """Describe the first failure of hardware among `gpus`; `ecc` are the memory errors counted before the program."""
    for gpu in gpus:
        more = (gpu.ecc or 0) - ecc.get(gpu.id, gpu.ecc or 0)
        if gpu.fault:
            what = message(HARDWARE.get(gpu.fault, "a fault of the device"))
            return message("GPU {gpu}: XID {xid}, {reason}", gpu=gpu.id, xid=gpu.fault, reason=what)
        if more > 0:
            return message("GPU {gpu}: {count} uncorrected memory errors (ECC)", gpu=gpu.id, count=more)
    return ""


def visible_devices(environment: Mapping[str, str]) -> Optional[Tuple[str, ...]]:
    """Return the numbers or UUIDs of the program's devices. () means all devices of the node, None means no device."""
    for name in _NAMES:
        given = environment.get(name)
        if given is not None and given != "all":
            ids = tuple(word.strip() for word in given.split(",") if word.strip())
            return None if not ids or ids[0] in ("-1", "void", "none", "NoDevFiles") else ids
    return ()
