"""A helper process (`howdah.wire.helper_main`) makes the checks that a container makes alone.

It writes the line {"begun": check} before each check, and {"found": sentence} or {"left_out": sentence} after it. The
first failure ends it; the error names the check, the value and what is wanted. A check that can't be made is left out,
which is no failure.
"""

from __future__ import annotations

import os
import random
import time
from typing import Callable, Dict, Optional, Tuple

from howdah.errors import HowdahError
from howdah.executor.gpu import claims
from howdah.executor.gpu.monitor import visible_devices
from howdah.executor.preflight.requests import LocalChecksRequest
from howdah.executor.preflight.torch_probe import run_torch_check
from howdah.executor.process import oom_detection
from howdah.wire.helper_main import run_helper_main, write_line

_MIB = 1 << 20
_WRITE_MIB = 16
_FILE = ".howdah-preflight"

Answer = Tuple[str, str]
"""A word (`found`, `left_out`, `error`) and a sentence."""


def disk(request: LocalChecksRequest) -> Answer:
    """Check that there is room, and that a file is read back as it was written."""
    directory, wanted = request.directory, max(request.order.disk_mib, _WRITE_MIB)
    about = os.statvfs(directory)
    free = about.f_bavail * about.f_frsize // _MIB
    if free < wanted:
        return "error", f"{format_size(free)} free on {_mount_point(directory)}, wanted {format_size(wanted)}"
    path = os.path.join(directory, f"{_FILE}-{os.getpid()}")
    try:
        seconds, same = _written_and_read(path)
    except OSError as error:
        return "error", f"a file of {_WRITE_MIB} MiB in {directory}: {error.strerror or error}"
    finally:
        if os.path.exists(path):
            os.unlink(path)
    if not same:
        return "error", f"a file of {_WRITE_MIB} MiB in {directory} was read back with other content than was written"
    return "found", f"{format_size(free)} free, {_WRITE_MIB / max(seconds, 1e-6):.0f} MiB/s written and synced"


def _mount_point(directory: str) -> str:
    """Return the mount point of the working directory; the directory's own path tells users little."""
    while not os.path.ismount(directory):
        directory = os.path.dirname(os.path.abspath(directory))
    return directory


def _written_and_read(path: str) -> Tuple[float, bool]:
    piece = random.Random(path).randbytes(_MIB)  # noqa: S311 - a pattern, no secret
    began = time.monotonic()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        for _ in range(_WRITE_MIB):
            view = memoryview(piece)
            while view:
                view = view[os.write(file, view) :]
        os.fsync(file)
        seconds = time.monotonic() - began
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # from the disk, not from the cache
        return seconds, all(os.pread(file, _MIB, number * _MIB) == piece for number in range(_WRITE_MIB))
    finally:
        os.close(file)


def memory_limits(request: LocalChecksRequest) -> Answer:
    """Check what the control groups let the container use, and what the node has left."""
    wanted = request.memory_mib
    limit, free = oom_detection.least_limit_mib(), oom_detection.available_mib()
    if limit is not None and limit < wanted:
        return (
            "error",
            f"its control group may use {format_size(limit)}, wanted {format_size(wanted)} (resources.memory)",
        )
    if free is not None and free < wanted:
        return "error", f"the node has {format_size(free)} left, wanted {format_size(wanted)} (resources.memory)"
    return (
        "found",
        f"limit {'none' if limit is None else format_size(limit)}, {format_size(free or 0)} left on the node",
    )


def gpu(request: LocalChecksRequest) -> Answer:
    """Check that as many GPUs are visible as the job asks for, and that none has lost data."""
    wanted, variables = request.gpus, request.variables
    if not wanted:
        return "left_out", "no GPUs are asked for"
    there = claims.count(variables)
    ids = visible_devices(variables)
    seen = 0 if ids is None else min(there, len(ids) or there)
    if seen < wanted:
        return "error", f"{seen} GPUs are here ({there} on the node), wanted {wanted}"
    return _ecc(ids or ()) or ("found", f"{seen} GPUs")


def _ecc(ids: Tuple[str, ...]) -> Optional[Answer]:
    """Return a problem with the memory errors that the driver counts; None if it counts none, or there is no driver."""
    from howdah.executor.gpu.sampler import Devices

    try:
        for device in Devices(list(ids)).sample():
            if device.ecc:
                return "error", f"GPU {device.id} has counted {device.ecc} uncorrectable memory errors, wanted 0"
    except OSError:
        return None
    return None


def matmul(request: LocalChecksRequest) -> Answer:
    """Multiply matrices by the job's torch; on the CPU where the job asks for no GPUs."""
    question = {"check": "matmul", "gpus": request.gpus}
    answer = run_torch_check(request.python, request.variables, question, 3600.0)  # the executor has the limit
    word = next(iter(answer))
    return word, str(answer[word])


CHECKS: Dict[str, Callable[[LocalChecksRequest], Answer]] = {
    "disk": disk,
    "memory": memory_limits,
    "gpu": gpu,
    "matmul": matmul,
}


def format_size(mib: float) -> str:
    """Format a size for people to read."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


def check_container(request: LocalChecksRequest) -> None:
    """Make one check after the other.

    Raises:
        HowdahError: a check has failed.
    """
    for name in request.order.checks:
        write_line({"begun": name})
        try:
            word, text = CHECKS[name](request)
        except OSError as error:
            word, text = "error", str(error)
        if word == "error":
            raise HowdahError(f"{name}: {text}")
        write_line({word: f"{name}: {text}"})


if __name__ == "__main__":
    run_helper_main({"check": check_container})
