"""The GPUs of a program, sampled by a process beside the executor; nothing runs where there are none."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.gpu.claims import count
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.process_tree import Reaper
from howdah.executor.process.usage import PERIOD_S
from howdah.spec.codec import decode
from howdah.spec.gpu import HARDWARE, Gpu

_NAMES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class GpuMonitor:
    """`gpus` is the last sample, `mean` the mean use (0..1) since the first; empty where nothing can be said, for which
    `note` gets the reason."""

    def __init__(
        self, loop: EventLoop, reaper: Reaper, environment: Mapping[str, str], note: Callable[[str], None]
    ) -> None:
        self.gpus: Tuple[Gpu, ...] = ()
        self._sum, self._count = 0.0, 0
        self._ecc: Dict[str, int] = {}
        self._note = note
        self._sidecar: Optional[HelperProcess] = None
        ids = wanted(environment)
        self._all_of_the_node = ids == ()
        if ids is None or not count(environment):
            return
        request = {"ids": ids, "period_s": PERIOD_S}
        try:
            self._sidecar = HelperProcess(
                loop, reaper, ("howdah.executor.gpu.sampler",), request, self._told, self._ended
            )
        except OSError as error:
            note(f"the GPUs are not measured: {error}")

    @property
    def mean(self) -> Optional[float]:
        """Of all of them."""
        return round(self._sum / self._count, 3) if self._count else None

    @property
    def fault(self) -> str:
        """What the hardware of one of them did while the program ran; "" when nothing is known. Of a program that may
        see all GPUs of its node nobody knows which it uses."""
        return "" if self._all_of_the_node else fault(self.gpus, self._ecc)

    def close(self) -> None:
        """The program has ended; what was told until now counts."""
        if self._sidecar is not None:
            self._sidecar.listen()
            self._sidecar.kill()
            self._sidecar = None

    def _told(self, message: Mapping[str, Any]) -> None:
        if "gpus" in message:
            self.gpus = tuple(decode(Gpu, one) for one in message["gpus"])
            for gpu in self.gpus:
                if gpu.ecc is not None:
                    self._ecc.setdefault(gpu.id, gpu.ecc)
            told = [gpu.use for gpu in self.gpus if gpu.use is not None]
            self._sum, self._count = self._sum + sum(told), self._count + len(told)

    def _ended(self, problem: str) -> None:
        if self._sidecar is not None:
            self._note(problem)
        self._sidecar = None


def fault(gpus: Sequence[Gpu], ecc: Mapping[str, int]) -> str:
    """The first failure of hardware among these; `ecc` are the uncorrected memory errors that each had counted when the
    program began."""
    for gpu in gpus:
        more = (gpu.ecc or 0) - ecc.get(gpu.id, gpu.ecc or 0)
        if gpu.fault:
            return f"GPU {gpu.id}: XID {gpu.fault}, {HARDWARE.get(gpu.fault, 'a fault of the device')}"
        if more > 0:
            return f"GPU {gpu.id}: {more} uncorrected memory errors (ECC)"
    return ""


def wanted(environment: Mapping[str, str]) -> Optional[Tuple[str, ...]]:
    """Numbers or UUIDs of the program's devices, () for all there are, None when it is to see none."""
    for name in _NAMES:
        given = environment.get(name)
        if given is not None and given != "all":
            ids = tuple(word.strip() for word in given.split(",") if word.strip())
            return None if not ids or ids[0] in ("-1", "void", "none", "NoDevFiles") else ids
    return ()
