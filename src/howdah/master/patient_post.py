"""Posts to an address once, so that the same message cannot arrive at another address, or several times.

The rule: an address is the one that the user wrote; where it would lead on to is not followed.
"""

from __future__ import annotations

import http.client
import time
import urllib.request
from typing import Any

CONNECT_S = 3.0
"""How long the connection to one of a host's addresses may take."""


class _Patient(http.client.HTTPConnection):
    """Gives the connection little time, and the answer what is left of the request's limit."""

    def connect(self) -> None:
        limit, began = float(self.timeout or CONNECT_S), time.monotonic()
        self.timeout = min(limit, CONNECT_S)
        super().connect()
        self.sock.settimeout(max(limit - (time.monotonic() - began), 0.1))


class _PatientSecure(_Patient, http.client.HTTPSConnection):
    """Does the same where the connection is encrypted."""


class _PatientHTTP(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_Patient, request)


class _PatientHTTPS(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_PatientSecure, request)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def post(url: str, body: bytes, limit_s: float) -> None:
    """Post JSON, and wait for the answer up to the limit.

    Raises:
        HTTPError: the answer is none of success; a redirection is none. URLError: there was no connection, or the body
        was not sent. TimeoutError: the body was sent, and there was no answer in time.
    """
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - the caller checks
    opener = urllib.request.build_opener(_PatientHTTP, _PatientHTTPS, _NoRedirect)
    opener.open(request, timeout=limit_s).close()
