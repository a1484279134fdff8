"""The command that starts a TensorBoard, and the link to it: a path that cannot be guessed, and a token.

The master (`howdah.master.tensorboard`), a client (`howdah.client.tensorboard_install`) and the framework `board`
(`frameworks/tensorboard.py`) start it; it runs as `howdah.tensorboard`, which knows the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Mapping, Sequence, Tuple

INSTALLED = "tensorboard.json"
"""A file in an engine's home, which names the environment that `howdah tensorboard` has staged."""
VARIABLE = "HOWDAH_BOARD_TOKEN"
READY = "is ready at "
"""The words before `<host>:<port>` in the one line that TensorBoard's process prints."""
_START = """
import os, runpy, sys
sys.path += [os.path.abspath(path) for path in sys.argv[1].split(os.pathsep) if os.path.isdir(path)]
sys.argv[:] = sys.argv[1:]
runpy.run_module("howdah.tensorboard", run_name="__main__", alter_sys=True)
"""


def argv(python: str, howdah: Sequence[str], request: Mapping[str, Any]) -> Tuple[str, ...]:
    """Return the command. `howdah` are directories that come after the Python's own; one of them has the package."""
    return (python, "-c", _START, os.pathsep.join(howdah), json.dumps(request))


def path(token: str) -> str:
    """Return the path below which TensorBoard answers to the token: `/0123456789abcdef`."""
    return f"/{hashlib.sha256(f'path {token}'.encode()).hexdigest()[:16]}"


def link(host: str, port: int, token: str) -> str:
    """Return the address that opens TensorBoard."""
    return f"http://{host}:{port}{path(token)}/?token={token}"
