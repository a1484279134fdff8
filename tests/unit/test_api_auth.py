"""Tests who may look at a job, without a server."""

from __future__ import annotations

import pytest

from howdah.api.auth import Access
from howdah.api.http_server import Request
from howdah.wire import auth

KEY = b"k" * 32


@pytest.mark.parametrize(("admitted", "looks"), [(None, False), (False, False), (True, True)])
def test_without_a_token_only_a_proxy_that_vouches_lets_look(admitted: bool | None, looks: bool) -> None:
    admits = None if admitted is None else lambda peer, user: admitted and (peer, user) == ("10.0.0.1", "alice")
    access = Access(KEY, lambda _: KEY, admits)  # type: ignore[arg-type]
    assert access.may_view(Request("GET", "/", {"cookie": "proxy-user=alice"}, b"", "10.0.0.1")) is looks
    assert not access.may_view(Request("GET", "/?token=wrong", {"cookie": "proxy-user=alice"}, b"", "10.0.0.1"))
    assert access.may_view(Request("GET", f"/?token={auth.view_token(KEY)}", {}, b"", "10.0.0.1"))
