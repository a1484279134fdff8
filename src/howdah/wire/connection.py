"""`MasterConnection` makes signed JSON calls to the master, with the standard library alone.

One connection is used by one thread. It reconnects by itself, once per call; every failure is a `WireError`.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from typing import Any, Optional

from howdah.wire import auth


class WireError(Exception):
    """A call to the master failed.

    `status` is its HTTP status; 0 without an answer that the master has signed, because the master of another job may
    have the port by now. `reason` is the body of the answer; of an unsigned answer it is the beginning, on one line.
    """

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class MasterConnection:
    """Calls the master at `base_url` as `principal`. `timeout` (seconds) limits connecting and each read."""

    def __init__(self, base_url: str, principal: str, key: bytes, timeout: float = 10.0) -> None:
        self.address = urllib.parse.urlsplit(base_url).netloc
        self.principal, self.key, self.timeout = principal, key, timeout
        self._http: Optional[http.client.HTTPConnection] = None

    def __enter__(self) -> MasterConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, message: Any = None, timeout: Optional[float] = None) -> Any:
        """Send `message` as JSON to `path` (with its query), and return the decoded answer.

        Raises:
            WireError: no answer, an answer that is not signed by the master, or a status other than 200.
        """
        body = b"" if message is None else json.dumps(message, separators=(",", ":")).encode()
        return json.loads(self._call(method, path, body, timeout or self.timeout))

    def download(self, path: str) -> bytes:
        """Return the bytes that the master has at `path`.

        Raises:
            WireError: as `call`.
        """
        return self._call("GET", path, b"", self.timeout)

    def _call(self, method: str, path: str, body: bytes, timeout: float) -> bytes:
        for last_try in (False, True):
            try:
                return self._exchange(method, path, body, timeout)
            except (OSError, http.client.HTTPException, ValueError) as error:
                reused = self._http is not None
                self.close()
                # A kept-alive connection may have been closed meanwhile: messages are idempotent, so once more.
                if last_try or not reused or isinstance(error, TimeoutError):
                    raise WireError(f"{method} {path} at {self.address}: {error or type(error).__name__}") from error
        raise AssertionError("unreachable")

    def _exchange(self, method: str, path: str, body: bytes, timeout: float) -> bytes:
        if self._http is None:
            self._http = http.client.HTTPConnection(self.address, timeout=timeout)
            self._http.connect()
        if self._http.sock is not None:
            self._http.sock.settimeout(timeout)
        requested_at = time.time()
        signature = auth.sign(self.key, "request", self.principal, path, requested_at, body)
        self._http.request(method, path, body, {auth.HEADER: signature, "Content-Type": "application/json"})
        response = self._http.getresponse()
        answer = response.read()
        status, header = response.status, response.headers.get(auth.HEADER, "")
        signed = auth.verify_answer(self.key, header, path, requested_at, answer, status)
        if status != 200:
            reason = answer.decode("utf-8", "replace").strip() or response.reason
            raise refusal(f"{method} {path} at {self.address}", status, reason, signed)
        if not signed:
            raise WireError(f"{method} {path} at {self.address}: the answer is not signed by this job's master")
        return answer

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._http is not None:
            self._http.close()
            self._http = None


def refusal(what: str, status: int, reason: str, signed: bool) -> WireError:
    """Return the error for an answer with another status than 200."""
    reason = reason if signed else auth.shorten_unsigned(reason)
    return WireError(f"{what}: {status} {reason}", status if signed else 0, reason)
