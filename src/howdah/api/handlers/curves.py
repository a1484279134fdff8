"""Handlers that pass a call on to the event-file service, and add the headers that its answer needs.

The rule: only its parent process can call the service, which trusts its parent; permissions were checked before.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping

from howdah.api.answer_language import has_sentences, request_language, translate_answer
from howdah.api.http_server import Response
from howdah.api.response_cache import compact_json
from howdah.api.router import ANSWER_HEADERS, compress_response
from howdah.api.routes import ROUTES, ApiRequest
from howdah.eventfiles import locations
from howdah.eventfiles.client import EMBED_HEADERS
from howdah.spec.view import JobView

_EMBEDDED_HEADERS: Mapping[str, str] = {
    **ANSWER_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors *",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Headers of images, and of the script that draws an image, which other pages may show. An SVG chart has inline
styles."""

_EMBEDDED = (
    "curves/embed.js",
    "curves/image",
    *(f"curves/{chart}.{form}" for chart in ("scalars", "histograms", "distributions") for form in ("svg", "png")),
)


_SHAPES = {route.path.removeprefix("jobs/{job}/"): route.answer for route in ROUTES if "relay" in route.handler}


async def relay(call: ApiRequest) -> Response:
    """Pass the request on to the event-file service and return its answer."""
    path = call.http.path.split(f"/jobs/{call.path_params['job']}/", 1)[1]
    embedded = path == "curves/embed.html"  # its script sends the page's own token
    parameters = urllib.parse.parse_qsl(call.http.target.partition("?")[2])  # a parameter may be repeated
    query = urllib.parse.urlencode([(name, value) for name, value in parameters if name != "token" or embedded])
    status, kind, body = await call.job.event_file_answer(f"{urllib.parse.quote(path)}?{query}")
    if kind.startswith("application/json"):
        body = _localised(body, "Error" if status >= 400 else _SHAPES.get(path, ""), request_language(call.http))
    if embedded:
        return Response(status, body, kind, {**EMBED_HEADERS, "Cache-Control": "no-store"})
    if path in _EMBEDDED and not kind.startswith("application/json"):
        return Response(status, body, kind, _EMBEDDED_HEADERS)
    if kind.startswith("audio/"):  # compressed already, or large
        return Response(status, body, kind, ANSWER_HEADERS)
    return compress_response(Response(status, body, kind, ANSWER_HEADERS), call.http)


def _localised(body: bytes, shape: str, language: str) -> bytes:
    return (
        body
        if language == "en" or not has_sentences(shape)
        else compact_json(translate_answer(json.loads(body), shape, language))
    )


def checkpoints(view: JobView) -> list[str]:
    """Return the directories that may hold checkpoints: the job's own, its outputs, and those of its event files."""
    return list(
        dict.fromkeys(uri for _, uri in (*locations.checkpoint_locations(view), *locations.event_file_locations(view)))
    )
