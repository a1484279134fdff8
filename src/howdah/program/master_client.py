"""Calls to the job's master, which may be replaced at any time: who does not answer is asked again, where it is now.

Every call may be repeated without harm. One connection for each thread; a forked process makes its own.
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

PATIENCE_S = 60.0
"""A master that is not there for this long has no successor: the executor has ended the program before."""
_RETRY_S = 0.3
REPLY_S = 10.0
_TELL_AFTER_S, _TELL_AGAIN_S = 30.0, 300.0
_NOT_NOW = (0, 500, 503, 504)

_own = threading.local()


def call(name: str, message: Mapping[str, Any], wait: float = 0.0) -> Dict[str, Any]:
    """Ask the master; its answer.

    Raises:
        HereError: it refuses, or nobody has answered for PATIENCE_S.
    """
    place = current()
    began = time.monotonic()
    while True:
        try:
            with _Borrowed(place) as connection:
                found: Dict[str, Any] = connection.call("POST", wire.PATH + name, message, wait + REPLY_S)
            return found
        except WireError as error:
            if error.status not in _NOT_NOW:
                raise HereError(f"here.{name}: {error.reason}") from None
            silent = time.monotonic() - began
            if silent > PATIENCE_S + wait:
                raise HereError(f"here.{name}: no answer from the job's master for {silent:.0f} s: {error}") from None
        time.sleep(_RETRY_S)


def wait_for(name: str, message: Mapping[str, Any], timeout: float, what: str) -> Dict[str, Any]:
    """Ask until the answer is `done`. After half a minute a line on stderr says what is waited for.

    Raises:
        HereTimeout: it was not within `timeout` seconds.
    """
    began = time.monotonic()
    tell_at = began + _TELL_AFTER_S
    while True:
        left = began + timeout - time.monotonic()
        wait = max(0.0, min(left, wire.MAX_WAIT_S, tell_at - time.monotonic() + 0.1))
        answer = call(name, {**message, "wait": round(wait, 3)}, wait)
        if answer.get("done"):
            return answer
        now, lacking = time.monotonic(), str(answer.get("lacking", ""))
        if now >= began + timeout:
            raise HereTimeout(f"{what}: not within {timeout:g} s" + (f"; {lacking}" if lacking else ""))
        if now >= tell_at:
            far = f"{what}: waiting for {now - began:.0f} s" + (f"; {lacking}" if lacking else "")
            sys.stderr.write(f"[howdah.program: {far}]\n")
            sys.stderr.flush()
            tell_at = now + _TELL_AGAIN_S


class _Borrowed:
    """This thread's connection, to where the master is now; one that failed is not kept."""

    def __init__(self, place: TaskIdentity) -> None:
        name = wire.principal(place.task, place.attempt, place.epoch)
        self._mark: Tuple[int, str, str] = (os.getpid(), name, _read(place, wire.MASTER_FILE))
        self._place = place

    def __enter__(self) -> MasterConnection:
        kept: Optional[_Kept] = getattr(_own, "kept", None)
        if kept is None or kept.mark != self._mark:
            key = bytes.fromhex(_read(self._place, wire.KEY_FILE))
            _own.kept = kept = _Kept(MasterConnection(self._mark[2], self._mark[1], key), self._mark)
        return kept.connection

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            _let_go()


class _Kept:
    """Of a thread; closed when that ends."""

    def __init__(self, connection: MasterConnection, mark: Tuple[int, str, str]) -> None:
        self.connection, self.mark = connection, mark

    def __del__(self) -> None:
        self.connection.close()


@atexit.register
def _let_go() -> None:
    _own.kept = None


def _read(place: TaskIdentity, name: str) -> str:
    path = os.path.join(place.directory, name)
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        gone = f"the executor of {place.task} is gone, or this is another machine"
        raise HereError(f"{path}: {error.strerror}: {gone}") from None
