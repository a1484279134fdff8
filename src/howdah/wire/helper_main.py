"""The main function of every helper process: a typed request on stdin, JSON lines on stdout, of which the last answers.

A helper is a module of howdah that an executor or a master runs as `python -m MODULE [VERB]`, because it needs
libraries or may wait for a file system. A verb is a function of one request dataclass that returns a reply dataclass or
None. The answer is {"ok": true} with the reply's fields, or {"error": "one sentence"} with those that the reply has all
the same; lines before it report progress. The exit status is 0 after "ok", 1 after "error".
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import typing
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Sequence

from howdah.errors import HowdahError
from howdah.localfiles.deep_directories import allow_deep_directories
from howdah.spec.codec import decode, encode
from howdah.spec.values import dataclass
from howdah.wire.stderr import ignore_full_disk

REPORT_S = 0.5
"""Seconds between two progress lines."""
PARENT = "HOWDAH_HELPER_PARENT"
"""The variable with the pid of the master for which a helper works."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class HelperReply:
    """The base of replies that also report failures; it is the reply itself if there is nothing else to report."""

    error: str = ""
    """Why the verb failed, in one line; "" when it did not."""


Verbs = Mapping[str, Callable[[Any], Any]]


def run_helper_main(verbs: Verbs) -> typing.NoReturn:
    """Answer the request on stdin by the verb that the command line names, or by the only one; then exit.

    The process exits at once: a thread that waits for a dead server must not hold it back.
    """
    ignore_full_disk()
    _end_with_parent()
    allow_deep_directories()
    answer = answer_request(verbs, sys.argv[1:], sys.stdin.buffer.read())
    write_line(answer)
    os._exit(1 if "error" in answer else 0)


def _end_with_parent() -> None:
    """Let the kernel kill this process when the master that started it ends, if a master did: the next master starts a
    helper for the same work, and the two would be in each other's way."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    import ctypes  # the master imports this module, and needs none

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if str(os.getppid()) != parent:
        os._exit(1)


def answer_request(verbs: Verbs, arguments: Sequence[str], text: bytes) -> Dict[str, Any]:
    """Return the answer to a request, which is JSON. Whatever the verb raises becomes its `error`."""
    try:
        verb = verbs[arguments[0]] if arguments else next(iter(verbs.values()))
        request_type = next(iter(typing.get_type_hints(verb).values()))
        reply = encode(verb(decode(request_type, json.loads(text)))) or {}
    except HowdahError as error:
        return {"error": one_line(error)}
    except Exception as error:  # of a library, or of a user's record reader: only the traceback tells where
        sys.excepthook(*sys.exc_info())
        return {"error": one_line(f"{type(error).__name__}: {error}")}
    return reply if "error" in reply else {"ok": True, **reply}


def helper_environment() -> Dict[str, str]:
    """Return the environment of a helper that imports howdah from the same place as this process."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def one_line(error: object) -> str:
    """Return the text of an error on one line."""
    return str(error).replace("\n", "; ")


def write_line(message: Mapping[str, Any]) -> None:
    """Write one line to stdout, in one piece even if several threads write."""
    os.write(1, json.dumps(message).encode() + b"\n")


class ProgressLines:
    """Writes {"done_files", "done_bytes"} lines, one per `REPORT_S` at most."""

    def __init__(self) -> None:
        self._written = 0.0

    def __call__(self, files: int, size: int) -> None:
        if time.monotonic() - self._written > REPORT_S:
            self._written = time.monotonic()
            write_line({"done_files": files, "done_bytes": size})
