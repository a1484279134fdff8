"""Who may see TensorBoard, which has no login of its own: who came with the token of the link, once.

The token becomes a cookie of one path that nobody can guess, and below which everything is served: cookies do not tell
ports apart, so another server on the same host would else be sent it.
"""

from __future__ import annotations

import hmac
import html
import time
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from howdah.wire.tensorboard_link import path

Application = Callable[[Mapping[str, Any], Callable[..., Any]], Iterable[bytes]]
COOKIE = "howdah-tensorboard"
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
]


class TokenMiddleware:
    """A WSGI application in front of another. `asked_at` (monotonic) is when somebody who may was last here."""

    def __init__(self, application: Application, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._application, self._token, self._clock = application, token, clock
        self.asked_at = clock()

    def __call__(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not self.knows(environ):
            return _refuse(start)
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        if self._fits(query.pop("token", "")):
            return self._let_in(start, str(environ.get("PATH_INFO", "")), query)
        self.asked_at = self._clock()
        return self._application(environ, start)

    def knows(self, environ: Mapping[str, Any]) -> bool:
        """Whether a request is below the token's path and has the token, or the cookie that it became."""
        own, asked = path(self._token), str(environ.get("PATH_INFO", ""))
        if not hmac.compare_digest(asked[: len(own)].encode(), own.encode()) or asked[len(own) : len(own) + 1] != "/":
            return False
        given = dict(parse_qsl(environ.get("QUERY_STRING", ""))).get("token", "")
        return self._fits(given) or self._fits(_cookie(environ))

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _let_in(self, start: Callable[..., Any], asked: str, query: Mapping[str, str]) -> Iterable[bytes]:
        """The token leaves the address bar. Lax: the way here may begin on the job's page, which is another site."""
        self.asked_at = self._clock()
        cookie = f"{COOKIE}={self._token}; Path={path(self._token)}/; HttpOnly; SameSite=Lax"
        to = asked + (f"?{urlencode(query)}" if query else "")
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
