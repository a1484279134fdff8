"""Who may look, embed and act: by tokens made from keys, or because the engine's own proxy vouches (docs/adr/0008).

The rule: being known to the proxy is never enough to change anything, for other pages behind it have its origin, too.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

from howdah.web.server import Request
from howdah.web.source import Refused
from howdah.wire import auth

HEADER = "howdah-token"


class Access:
    """`key` makes the token to look at all there is, `of_job(id)` is the key of one job, None where there is none;
    `admits(peer, proxy_user)` is the engine's word for its proxy."""

    def __init__(
        self, key: bytes, of_job: Callable[[str], bytes | None], admits: Callable[[str, str], bool] | None = None
    ) -> None:
        self.key, self.of_job, self.admits = key, of_job, admits

    def looks(self, request: Request) -> bool:
        """A token that is there must be right; without one the proxy's word counts."""
        token = _token(request)
        if token:
            return _same(token, auth.view_token(self.key))
        if self.admits is None:
            return False
        cookies = dict(part.strip().partition("=")[::2] for part in request.headers.get("cookie", "").split(";"))
        return self.admits(request.peer, cookies.get("proxy-user", ""))

    def embeds(self, job_id: str, request: Request) -> bool:
        """Whether the token shows this job's curves."""
        key, token = self.of_job(job_id), _token(request)
        return key is not None and bool(token) and _same(token, auth.embed_token(key))

    def may_act(self, job_id: str, token: str) -> bool:
        """Whether `token` lets its holder change this job now."""
        key = self.of_job(job_id)
        return key is not None and auth.may_act(key, token, time.time())


def _token(request: Request) -> str:
    return request.query.get("token", "") or request.headers.get(HEADER, "")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def check_place(request: Request, hosts: set[str], behind_proxy: bool = False) -> None:
    """A page of another name (DNS rebinding), or of another origin, does not get anything.

    Behind an engine's proxy the page's origin is the proxy's, by whatever name the reader calls it, and browsers tell
    it with module scripts and PUT. It proves nothing there: everybody's pages have it, and a change needs a token.

    Raises:
        Refused: Host or Origin is none of `hosts` (`name:port`).
    """
    host = request.headers.get("host", "")
    if host not in hosts:
        raise Refused(403, f"unknown Host {host[:80]!r}")
    origin = request.headers.get("origin")
    if not behind_proxy and origin is not None and origin.partition("://")[2] not in hosts:
        raise Refused(403, f"foreign Origin {origin[:80]!r}")
