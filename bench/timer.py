"""Runs a Python program unchanged, with the time before each line it prints: `python timer.py PROGRAM ARGUMENT ...`."""

from __future__ import annotations

import builtins
import runpy
import sys
import time
from typing import Any

_print = builtins.print


def _timed(*values: Any, **options: Any) -> None:
    if options.get("file") in (None, sys.stdout):
        values = (f"{time.time():.6f}", *values)
    _print(*values, **options)


if __name__ == "__main__":
    builtins.print = _timed
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
