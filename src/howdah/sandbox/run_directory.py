"""Claims and locks the directory of one sandbox."""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError, StagingError


@contextlib.contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Lock the run directory against a second `up` or `down`; make it first if there is none."""
    _claim(run_dir)
    with (run_dir / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EngineUnavailable(f"another sandbox command is at work in {run_dir}") from None
        yield


def _claim(run_dir: Path) -> None:
    if re.search(r"[\s:,;]", str(run_dir)):
        raise SpecError.at("run_dir", f"is {str(run_dir)!r}, must have no blank, colon, comma or semicolon")
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        stranger = next((entry for entry in run_dir.iterdir() if not (run_dir / "lock").exists()), None)
    except OSError as error:
        raise StagingError(f"the sandbox cannot use {run_dir}: {error.strerror}") from error
    if stranger:
        raise StagingError(f"{run_dir} is not a sandbox's and not empty ({stranger.name}): name another directory")
