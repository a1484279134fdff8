"""Checks that the Python of a shipped environment runs on this node, before the gang starts.

An environment's Python may be a link to the Python it was made with, or may be made for another system; both look right
until used.
"""

from __future__ import annotations

import os
from typing import Sequence

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd

_MAX_START_S = 60.0
_CODE = "import encodings, zlib"


def probe_interpreter(loop: EventLoop, python: str, on_end: OnEnd) -> HelperProcess:
    """Start `python` once; `on_end(problem)` says why it does not run on this node."""
    stderr = os.memfd_create("interpreter probe")

    def ended(problem: str) -> None:
        lines = os.pread(stderr, 1 << 16, 0).decode("utf-8", "replace").strip().splitlines()
        os.close(stderr)
        if problem and not helper.stop_reason:
            problem = f"{python} does not run on this node: {lines[-1] if lines else problem}"
        on_end(problem)

    helper = HelperProcess(
        loop,
        ("-c", _CODE),
        {},
        ended,
        limit_s=_MAX_START_S,
        late=lambda: f"{python} did not start within {_MAX_START_S:.0f} s",
        python=python,
        stderr=stderr,
    )
    return helper


def interpreter(directories: Sequence[str]) -> str:
    """Find the Python of an environment whose programs are in `directories`; "" when it has none.

    Raises:
        OSError: the environment's Python is a link to one that does not exist.
    """
    names = [os.path.join(directory, name) for directory in directories for name in ("python3", "python")]
    python = next((name for name in names if os.path.lexists(name)), "")
    if python and not os.path.exists(python):
        raise OSError(f"{python} leads to {os.path.realpath(python)}, which this node does not have")
    return python
