"""`python -m howdah.executor.gpu.sampler` samples GPUs by NVIDIA's management library, beside an executor.

A helper process (`howdah.wire.helper_main`) that writes a line {"gpus": [...]} (howdah.spec.gpu) every period, and at
once when a device has failed, until it is killed. It ends with an error where there is no driver or no device. Values
that a device does not report (a MIG part reports few) are left out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from howdah.errors import HowdahError
from howdah.spec.codec import encode
from howdah.spec.gpu import HARDWARE, LOST, Gpu
from howdah.wire.helper_main import run_helper_main, write_line
from howdah.wire.helper_messages import GpuSamplerRequest

_MIB = 1 << 20
_XID = 0x8  # nvmlEventTypeXidCriticalError


class Devices:
    """Reads the GPUs named `ids`; all of the node if none is named.

    Raises:
        OSError: there is no driver, or no such device.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        try:
            import pynvml
        except ImportError:
            raise OSError("nvidia-ml-py is not installed where the job was submitted: GPUs are not measured") from None
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            names = list(ids) or [str(number) for number in range(pynvml.nvmlDeviceGetCount())]
            self._handles = {name: self._handle(name) for name in names}
        except pynvml.NVMLError as error:
            raise OSError(f"the GPUs can't be measured: {error}") from None
        self._xids: dict[str, list[int]] = {name: [] for name in self._handles}
        self._lost: set[str] = set()
        self._events = self._listen()

    def _handle(self, name: str) -> Any:
        if name.isdigit():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(name))
        return self._nvml.nvmlDeviceGetHandleByUUID(name)

    def _listen(self) -> Any:
        """Ask the driver for its critical errors; None where it does not report them."""
        try:
            events = self._nvml.nvmlEventSetCreate()
            for handle in self._handles.values():
                self._nvml.nvmlDeviceRegisterEvents(handle, _XID, events)
        except self._nvml.NVMLError:
            return None
        return events

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until a device fails for the first time; count the driver's errors."""
        deadline = time.monotonic() + seconds
        while self._events is not None and time.monotonic() < deadline:
            left_ms = max(1, int(1000 * (deadline - time.monotonic())))
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, left_ms)
            except self._nvml.NVMLError as error:
                if error.value != self._nvml.NVML_ERROR_TIMEOUT:
                    self._events = None
                continue
            if self._count(event):
                return
        time.sleep(max(0.0, deadline - time.monotonic()))

    def _count(self, event: Any) -> bool:
        """Count an error; return whether it is the device's first hardware failure."""
        with contextlib.suppress(self._nvml.NVMLError):
            number = str(self._nvml.nvmlDeviceGetIndex(event.device))
            uuid = self._nvml.nvmlDeviceGetUUID(event.device)
            name = number if number in self._xids else uuid
            seen = self._xids.setdefault(name, [])
            seen.append(int(event.eventData))
            return seen[-1] in HARDWARE and HARDWARE.keys().isdisjoint(seen[:-1])
        return False

    def sample(self) -> list[Gpu]:
        """Sample all devices now."""
        return [self._sample_one(name, handle) for name, handle in self._handles.items()]

    def _sample_one(self, name: str, handle: Any) -> Gpu:
        nvml, xids = self._nvml, self._xids[name]
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle), name)
        kinds = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
        return Gpu(
            id=name,
            name=self._ask(lambda: _text(nvml.nvmlDeviceGetName(handle))) or "",
            use=self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
            memory_mib=round(memory.used / _MIB, 1) if memory else None,
            total_mib=round(memory.total / _MIB, 1) if memory else None,
            celsius=self._ask(lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
            watts=self._ask(lambda: round(nvml.nvmlDeviceGetPowerUsage(handle) / 1000, 1)),
            ecc=self._ask(lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, *kinds))),
            xids=len(xids),
            xid=xids[-1] if xids else 0,
            fault=next(filter(HARDWARE.__contains__, xids), LOST if name in self._lost else 0),
        )

    def _ask(self, question: Callable[[], Any], name: str = "") -> Any:
        """Ask for a value; return None if there is no answer. Remember a lost device, which the driver may report by no
        event."""
        try:
            return question()
        except self._nvml.NVMLError as error:
            if name and error.value == self._nvml.NVML_ERROR_GPU_IS_LOST:
                self._lost.add(name)
            return None


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def sample_forever(request: GpuSamplerRequest) -> None:
    """Write a line of samples every period.

    Raises:
        HowdahError: there is nothing to sample.
    """
    try:
        devices = Devices(request.ids)
    except OSError as error:
        raise HowdahError(str(error)) from error
    while True:
        write_line({"gpus": encode(devices.sample())})
        devices.wait(request.period_s)


if __name__ == "__main__":
    run_helper_main({"sample": sample_forever})
