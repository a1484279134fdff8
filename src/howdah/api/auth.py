"""Permissions to view, embed and act: by tokens made from keys, by a cookie that a token was exchanged for, or because
the engine's own proxy vouches for the caller (docs/adr/0008 and 0015).

The rule: the proxy's word never permits a change, because all other pages behind the proxy have the same origin.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from howdah.api.http_server import Caller, Request
from howdah.errors import NotPermitted
from howdah.wire import auth

HEADER = "howdah-token"
MAX_BODY = 64 << 10
"""The largest body, in bytes, that the holder of a token may send."""
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
COOKIE_LIFETIME_S = 90 * 86400
_OWN_PAGES = ("", "same-origin", "none")
"""Values of `Sec-Fetch-Site` for requests from the page itself and for typed addresses; "" is that of browsers that do
not send it."""


class Access:
    """Checks the tokens of one server. `key` makes the token to view everything, `key_of_job(id)` is the key of one
    job, None where there is none; `trusts_proxy(peer, proxy_user)` asks the engine whether `peer` is its proxy."""

    def __init__(
        self,
        key: bytes,
        key_of_job: Callable[[str], bytes | None],
        trusts_proxy: Callable[[str, str], bool] | None = None,
    ) -> None:
        self.key, self.key_of_job, self.trusts_proxy = key, key_of_job, trusts_proxy

    @property
    def page_path(self) -> str:
        """Return the path below which a browser sends the cookie of `open_session`; it begins and ends with a slash."""
        return auth.page_path(self.key)

    def may_view(self, request: Request) -> bool:
        """Return whether the request may view everything: its token decides, without one the cookie or the proxy."""
        token = _token(request)
        if token:
            return auth.is_same(token, auth.view_token(self.key))
        cookies = dict(part.strip().partition("=")[::2] for part in request.headers.get("cookie", "").split(";"))
        if self._has_session(request, cookies):
            return True
        return self.trusts_proxy is not None and self.trusts_proxy(request.peer, cookies.get("proxy-user", ""))

    def _has_session(self, request: Request, cookies: dict[str, str]) -> bool:
        """Return whether the cookie is valid and the page itself sent it: pages at other ports of this host belong to
        the same site, and the browser sends the cookie for them, too."""
        own = request.headers.get("sec-fetch-site", "") in _OWN_PAGES
        return own and auth.is_same(cookies.get(self._cookie, ""), auth.session_token(self.key))

    @property
    def _cookie(self) -> str:
        return f"howdah-{self.page_path.strip('/')[:8]}"

    def open_session(self, token: str) -> str:
        """Return the `Set-Cookie` header that permits a browser to view without the token.

        Raises:
            NotPermitted: `token` is not the token of this server.
        """
        if not auth.is_same(token, auth.view_token(self.key)):
            raise NotPermitted("the token does not belong to this page's link", "token")
        value = f"{self._cookie}={auth.session_token(self.key)}"
        return f"{value}; Path={self.page_path}; Max-Age={COOKIE_LIFETIME_S}; HttpOnly; SameSite=Strict"

    def may_embed(self, job_id: str, request: Request) -> bool:
        """Return whether the request's token permits to see this job's curves."""
        key, token = self.key_of_job(job_id), _token(request)
        return key is not None and bool(token) and auth.is_same(token, auth.embed_token(key))

    def identify(self, request: Request) -> Caller | None:
        """Return the caller if the head of the request has a token that permits anything here."""
        below = request.path.partition("/api/v1/jobs/")[2]
        known = self.may_view(request) or (bool(below) and self.may_embed(below.partition("/")[0], request))
        return Caller("", MAX_BODY) if known else None

    def may_act(self, job_id: str, token: str) -> bool:
        """Return whether `token` permits its holder to change this job now."""
        key = self.key_of_job(job_id)
        return key is not None and auth.may_act(key, token, time.time())


def _token(request: Request) -> str:
    return request.query.get("token", "") or request.headers.get(HEADER, "")


def check_host_and_origin(request: Request, hosts: set[str], behind_proxy: bool = False) -> None:
    """Refuse requests of pages that use another host name (DNS rebinding) or come from another origin.

    Behind an engine's proxy the page has the proxy's origin, under whatever name the reader uses, and browsers send it
    with module scripts and PUT. There the origin proves nothing, since all pages have it, and is not checked: a change
    needs a token anyway.

    At the end of a tunnel the page has a loopback name with the tunnel's port. Nobody can make such a name lead
    elsewhere, so the port is not checked.

    Raises:
        NotPermitted: Host is neither a loopback name nor one of `hosts` (`name:port`), or Origin is not the same.
    """
    host = request.headers.get("host", "")
    if host not in hosts and host.rpartition(":")[0] not in _LOOPBACK_NAMES:
        raise NotPermitted(f"unknown Host {host[:80]!r}")
    origin = request.headers.get("origin")
    if not behind_proxy and origin is not None and origin.partition("://")[2] not in {host, *hosts}:
        raise NotPermitted(f"foreign Origin {origin[:80]!r}")
