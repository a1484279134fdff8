"""The executor's own log, which is its standard error."""

from __future__ import annotations

import sys
import time


def log(text: str) -> None:
    """Write a line to the executor's own log."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)
