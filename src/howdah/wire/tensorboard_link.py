"""How a TensorBoard of ours is started, and where it is reached: below a path that nobody guesses, opened by a token.

Who starts one and who runs it share these words. Pure.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Mapping, Sequence, Tuple

INSTALLED = "tensorboard.json"
"""In an engine's home: the environment that `howdah tensorboard` has put there, a StagedFile."""
VARIABLE = "HOWDAH_BOARD_TOKEN"
READY = "is ready at "
"""What its one line says before `<host>:<port>`."""
_START = """
import os, runpy, sys
sys.path += [os.path.abspath(path) for path in sys.argv[1].split(os.pathsep) if os.path.isdir(path)]
sys.argv[:] = sys.argv[1:]
runpy.run_module("howdah.tensorboard", run_name="__main__", alter_sys=True)
"""


def argv(python: str, howdah: Sequence[str], request: Mapping[str, Any]) -> Tuple[str, ...]:
    """The command; `howdah` are directories of which one has howdah, used behind the Python's own libraries."""
    return (python, "-c", _START, os.pathsep.join(howdah), json.dumps(request))


def path(token: str) -> str:
    """`/0123456789abcdef`, below which the token opens."""
    return f"/{hashlib.sha256(f'path {token}'.encode()).hexdigest()[:16]}"


def link(host: str, port: int, token: str) -> str:
    """The address that lets in."""
    return f"http://{host}:{port}{path(token)}/?token={token}"
