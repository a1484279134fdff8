"""Who may look, embed and act: by tokens made from keys, by a cookie that a token was exchanged for, or because the
engine's own proxy vouches (docs/adr/0008 and 0011).

The rule: being known to the proxy is never enough to change anything, for other pages behind it have its origin, too.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

from howdah.api.http_server import Caller, Request
from howdah.api.sources import ApiError
from howdah.wire import auth

HEADER = "howdah-token"
MAX_BODY = 64 << 10
"""Bytes of a body that the holder of a token may send."""
COOKIE_LIVES_S = 90 * 86400
_OWN_PAGES = ("", "same-origin", "none")
"""What `Sec-Fetch-Site` says of requests from the page itself, and of addresses that a person has typed; "" in browsers
that do not tell."""


class Access:
    """`key` makes the token to look at all there is, `of_job(id)` is the key of one job, None where there is none;
    `admits(peer, proxy_user)` is the engine's word for its proxy."""

    def __init__(
        self, key: bytes, of_job: Callable[[str], bytes | None], admits: Callable[[str, str], bool] | None = None
    ) -> None:
        self.key, self.of_job, self.admits = key, of_job, admits

    @property
    def place(self) -> str:
        """The path below which a browser sends the cookie of `open_session`, with a slash at both ends."""
        return auth.page_place(self.key)

    def may_view(self, request: Request) -> bool:
        """A token that is there must be right; without one the cookie counts, and the proxy's word."""
        token = _token(request)
        if token:
            return _same(token, auth.view_token(self.key))
        cookies = dict(part.strip().partition("=")[::2] for part in request.headers.get("cookie", "").split(";"))
        if self._has_session(request, cookies):
            return True
        return self.admits is not None and self.admits(request.peer, cookies.get("proxy-user", ""))

    def _has_session(self, request: Request, cookies: dict[str, str]) -> bool:
        """Pages of another port of this host are of the same site, so the cookie alone does not tell them apart."""
        own = request.headers.get("sec-fetch-site", "") in _OWN_PAGES
        return own and _same(cookies.get(self._cookie, ""), auth.session_token(self.key))

    @property
    def _cookie(self) -> str:
        return f"howdah-{self.place.strip('/')[:8]}"

    def open_session(self, token: str) -> str:
        """The `Set-Cookie` header that lets the browser of who has the token to look in without it.

        Raises:
            Refused: it is not that token.
        """
        if not _same(token, auth.view_token(self.key)):
            raise ApiError(403, "this is not the token of this page's link", "token")
        value = f"{self._cookie}={auth.session_token(self.key)}"
        return f"{value}; Path={self.place}; Max-Age={COOKIE_LIVES_S}; HttpOnly; SameSite=Strict"

    def may_embed(self, job_id: str, request: Request) -> bool:
        """Whether the token shows this job's curves."""
        key, token = self.of_job(job_id), _token(request)
        return key is not None and bool(token) and _same(token, auth.embed_token(key))

    def identify(self, request: Request) -> Caller | None:
        """Who the head of a request shows to be somebody that has a token which is good for anything here."""
        below = request.path.partition("/api/v1/jobs/")[2]
        known = self.may_view(request) or (bool(below) and self.may_embed(below.partition("/")[0], request))
        return Caller("", MAX_BODY) if known else None

    def may_act(self, job_id: str, token: str) -> bool:
        """Whether `token` lets its holder change this job now."""
        key = self.of_job(job_id)
        return key is not None and auth.may_act(key, token, time.time())


def _token(request: Request) -> str:
    return request.query.get("token", "") or request.headers.get(HEADER, "")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def check_host_and_origin(request: Request, hosts: set[str], behind_proxy: bool = False) -> None:
    """A page of another name (DNS rebinding), or of another origin, does not get anything.

    Behind an engine's proxy the page's origin is the proxy's, by whatever name the reader calls it, and browsers tell
    it with module scripts and PUT. It proves nothing there: everybody's pages have it, and a change needs a token.

    Raises:
        Refused: Host or Origin is none of `hosts` (`name:port`).
    """
    host = request.headers.get("host", "")
    if host not in hosts:
        raise ApiError(403, f"unknown Host {host[:80]!r}")
    origin = request.headers.get("origin")
    if not behind_proxy and origin is not None and origin.partition("://")[2] not in hosts:
        raise ApiError(403, f"foreign Origin {origin[:80]!r}")
