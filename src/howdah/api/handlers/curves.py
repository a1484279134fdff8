"""Calls that the curves service answers: they are passed on, and what comes back gets the headers it needs.

The rule: the service is asked by its parent alone and trusts it; who may ask was decided before.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from howdah.api.http_server import Response
from howdah.api.router import ANSWER_HEADERS, packed
from howdah.api.routes import ApiRequest
from howdah.eventfiles import locations
from howdah.eventfiles.client import EMBED_HEADERS
from howdah.spec.view import JobView

_SHOWN_HEADERS: Mapping[str, str] = {
    **ANSWER_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors *",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Of images and of the script that draws one: other pages show them. A chart as SVG has a style of its own."""

_SHOWN = (
    "curves/embed.js",
    "curves/image",
    *(f"curves/{chart}.{form}" for chart in ("scalars", "histograms", "distributions") for form in ("svg", "png")),
)


async def relay(asked: ApiRequest) -> Response:
    """The service's answer."""
    path = asked.request.path.split(f"/jobs/{asked.places['job']}/", 1)[1]
    embedded = path == "curves/embed.html"  # whose script asks with the page's own token
    asked_for = urllib.parse.parse_qsl(asked.request.target.partition("?")[2])  # a parameter may come several times
    query = [(name, value) for name, value in asked_for if name != "token" or embedded]
    status, kind, body = await asked.one.curves(f"{urllib.parse.quote(path)}?{urllib.parse.urlencode(query)}")
    if path == "curves/embed.html":
        return Response(status, body, kind, {**EMBED_HEADERS, "Cache-Control": "no-store"})
    if path in _SHOWN and not kind.startswith("application/json"):
        return Response(status, body, kind, _SHOWN_HEADERS)
    return packed(Response(status, body, kind, ANSWER_HEADERS), asked.request)


def checkpoints(view: JobView) -> list[str]:
    """Directories that may hold checkpoints: the job's own, its outputs, and wherever its event files are."""
    return list(dict.fromkeys(uri for _, uri in (*locations.kept(view), *locations.of(view))))
