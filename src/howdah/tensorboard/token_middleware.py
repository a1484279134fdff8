"""Protects TensorBoard, which has no login of its own: only a browser that has opened the link with the token sees it.

The token becomes a cookie of one path that cannot be guessed, below which everything is served. Browsers send a cookie
to all ports of a host, so without this path another server on the same host would receive it.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from howdah.tensorboard.waiting_page import WaitingPage
from howdah.tensorboard.wsgi_call import Application
from howdah.wire import auth
from howdah.wire.tensorboard_command import path

COOKIE = "howdah-tensorboard"
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
]


class TokenMiddleware:
    """A WSGI application in front of another. `last_request_at` is when a permitted request last came (monotonic)."""

    def __init__(self, application: Application, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._application, self._token, self._clock = application, token, clock
        self._waiting_page = WaitingPage(application, f"{path(token)}/")
        self.last_request_at = clock()

    def __call__(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not self.is_permitted(environ):
            return _refuse(start)
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        if self._is_token(query.pop("token", "")):
            return self._set_cookie(start, str(environ.get("PATH_INFO", "")), query)
        if self._waiting_page.is_needed(environ):  # the page polls by itself, which is not use
            start("200 OK", _HEADERS)
            return [self._waiting_page.content(environ)]
        self.last_request_at = self._clock()
        return self._application(environ, start)

    def is_permitted(self, environ: Mapping[str, Any]) -> bool:
        """Return whether a request is below the token's path and has the token or its cookie."""
        prefix, requested = f"{path(self._token)}/", str(environ.get("PATH_INFO", ""))
        if not auth.is_same(requested[: len(prefix)], prefix):
            return False
        token = dict(parse_qsl(environ.get("QUERY_STRING", ""))).get("token", "")
        return self._is_token(token) or self._is_token(_cookie(environ))

    def _is_token(self, text: str) -> bool:
        return auth.is_same(text, self._token)

    def _set_cookie(self, start: Callable[..., Any], requested: str, query: Mapping[str, str]) -> Iterable[bytes]:
        """Redirect to the same address without the token, and set the cookie. It is lax: the link may be on the job's
        page, which is another site."""
        self.last_request_at = self._clock()
        cookie = f"{COOKIE}={self._token}; Path={path(self._token)}/; HttpOnly; SameSite=Lax"
        to = requested + (f"?{urlencode(query)}" if query else "")
        start("303 See Other", [*_HEADERS, ("Location", to), ("Set-Cookie", cookie)])
        return [f'<a href="{html.escape(to)}">TensorBoard</a>\n'.encode()]


def _cookie(environ: Mapping[str, Any]) -> str:
    try:
        found = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _refuse(start: Callable[..., Any]) -> Iterable[bytes]:
    start("403 Forbidden", _HEADERS)
    return [b"This TensorBoard opens with the link that `howdah tensorboard` prints, or the job's page shows.\n"]
