"""Calls the job's master, which may be replaced at any time: an unanswered call is repeated at the current address.

Every call may be repeated without harm. Each thread has a connection of its own, and a forked process opens new ones.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Dict, Mapping, Optional, Tuple

from howdah.program.task_identity import HereError, HereTimeout, TaskIdentity, current
from howdah.wire import program_protocol as wire
from howdah.wire.connection import MasterConnection, WireError

GIVE_UP_S = 60.0
"""Seconds after which a call gives up waiting for a master that does not answer; the executor ends the program earlier
if the master has no successor."""
_RETRY_S = 0.3
"""Seconds between two tries while the master is away; its successor needs about a second."""
REPLY_S = 10.0
"""Seconds for the answer to arrive, beyond the time for which the call asked the master to wait."""
_WARN_AFTER_S, _WARN_AGAIN_S = 30.0, 300.0
"""Seconds after which a waiting call writes a line to the log, and seconds after which it writes another one."""
_TRY_AGAIN = (0, 500, 503, 504)

_thread = threading.local()


def call(name: str, message: Mapping[str, Any], wait: float = 0.0) -> Dict[str, Any]:
    """Send `message` to the master, and return its answer.

    Raises:
        HereError: the master refuses, or has not answered for GIVE_UP_S.
    """
    identity = current()
    began = time.monotonic()
    while True:
        try:
            answer: Dict[str, Any] = _connection(identity).call("POST", wire.PATH + name, message, wait + REPLY_S)
            return answer
        except WireError as error:
            _close_connection()
            if error.status not in _TRY_AGAIN:
                raise HereError(f"here.{name}: {error.reason}") from None
            silent = time.monotonic() - began
            if silent > GIVE_UP_S + wait:
                raise HereError(f"here.{name}: no answer from the job's master for {silent:.0f} s: {error}") from None
        except BaseException:  # an interrupted call leaves half an answer in the connection
            _close_connection()
            raise
        time.sleep(_RETRY_S)


def wait_for(name: str, message: Mapping[str, Any], timeout: float, what: str) -> Dict[str, Any]:
    """Repeat the call until its answer is `done`. After half a minute a line on stderr says what is missing.

    Raises:
        HereTimeout: the answer was not `done` within `timeout` seconds.
    """
    began = time.monotonic()
    warn_at = began + _WARN_AFTER_S
    while True:
        left = began + timeout - time.monotonic()
        wait = max(0.0, min(left, wire.MAX_WAIT_S, warn_at - time.monotonic() + 0.1))
        answer = call(name, {**message, "wait": round(wait, 3)}, wait)
        if answer.get("done"):
            return answer
        now, missing = time.monotonic(), str(answer.get("lacking", ""))
        if now >= began + timeout:
            raise HereTimeout(f"{what}: not within {timeout:g} s" + (f"; {missing}" if missing else ""))
        if now >= warn_at:
            line = f"{what}: waiting for {now - began:.0f} s" + (f"; {missing}" if missing else "")
            sys.stderr.write(f"[howdah.program: {line}]\n")
            sys.stderr.flush()
            warn_at = now + _WARN_AGAIN_S


class _OpenConnection:
    """The connection of one thread, closed when the thread ends."""

    def __init__(self, connection: MasterConnection, identity: Tuple[int, str, str]) -> None:
        self.connection, self.identity = connection, identity

    def __del__(self) -> None:
        self.connection.close()


def _connection(task: TaskIdentity) -> MasterConnection:
    """Return this thread's connection to the master's current address."""
    principal, master = wire.program_principal(task.task, task.attempt, task.epoch), _read(task, wire.MASTER_FILE)
    identity = (os.getpid(), principal, master)
    known: Optional[_OpenConnection] = getattr(_thread, "open", None)
    if known is None or known.identity != identity:
        key = bytes.fromhex(_read(task, wire.KEY_FILE))
        _thread.open = known = _OpenConnection(MasterConnection(master, principal, key), identity)
    return known.connection


@atexit.register
def _close_connection() -> None:
    _thread.open = None


def _read(identity: TaskIdentity, name: str) -> str:
    path = os.path.join(identity.directory, name)
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        gone = f"the executor of {identity.task} is gone, or this is another machine"
        raise HereError(f"{path}: {error.strerror}: {gone}") from None
