"""The one way in for browsers and programs that look: static files, the calls of `calls.CALLS`, and actions.

The rule: nothing is changed but by PUT or POST on an action, with a token that lets its holder act (docs/adr/0008).
A browser exchanges the token of its link for a cookie by PUT on `session` (docs/adr/0011).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import urllib.parse
from dataclasses import replace
from typing import Any

from howdah.api import static_files
from howdah.api.errors import status_of
from howdah.api.http_server import Request, Response
from howdah.api.response_cache import ResponseCache, compact, pack, unpack
from howdah.api.routes import PREFIX, ApiRequest, Route, handler, match
from howdah.api.sources import ApiError, JobSource, Source
from howdah.errors import RequestRefused

ANSWER_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
LOOK_HINT = "you need an access link: run `{command}` and open what it prints"
ACT_HINT = "this needs a link that may act: `howdah page ID` prints one, good for 12 hours"
SESSION = f"{PREFIX}session"
WORTH_PACKING = 1024
# Paths that are answered as another system answered them, each by a module that is imported when the first is asked
# for.
_OTHER_SYSTEMS = {"/ws/": "howdah.compat.xlearning.rest"}


class ApiRouter:
    """Answers requests from a source. Host and Origin were checked before."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._rendered = ResponseCache()

    async def answer(self, request: Request) -> Response:
        """Every answer there is; an error is `{"error": line, "place": parameter}`."""
        try:
            return await self._answer(request)
        except RequestRefused as refused:
            return error_response(refused)

    async def _answer(self, request: Request) -> Response:
        place = self.source.access.place
        if request.target.startswith(place):  # below it the browser sends the page's cookie
            request.target = request.target[len(place) - 1 :]
        path = request.path
        if path == "/metrics":
            path = f"{PREFIX}jobs/{self.source.only}/metrics.prom"
        if path.startswith(PREFIX):
            if request.method in ("PUT", "POST"):
                if path == SESSION:
                    return self._open_session(request)
                return await self._act(request, path[len(PREFIX) :])
            _looking(request)
            return await self._call(request, path[len(PREFIX) :])
        for prefix, module in _OTHER_SYSTEMS.items() if self.source.only else ():
            if path.startswith(prefix):
                return await self._answer_as(module, request)
        _looking(request)
        return static_files.answer(request)

    async def _call(self, request: Request, path: str) -> Response:
        found = match(path)
        if found is None:
            raise ApiError(404, f"nothing answers GET {request.path}; api/v1/openapi.json lists what does")
        call, places = found
        self._admit(request, call, places.get("job", ""))
        job = await self._job(places["job"]) if "job" in places else None
        asked = ApiRequest(request, self.source, job, places, request.query)
        if "open" in asked.query:
            self.source.note_open_page(asked.query["open"] == "hidden")
        if call.cached:
            return await self._kept(call, asked)
        value = await handler(call)(asked)
        return value if isinstance(value, Response) else respond(value, request)

    def _admit(self, request: Request, call: Route, job_id: str) -> None:
        if self.source.may_view(request):
            return
        if not (call.embeddable and self.source.may_embed(job_id, request)):
            raise self._look_refusal()

    def _look_refusal(self) -> ApiError:
        command = self.source.link_command
        return ApiError(403, LOOK_HINT.format(command=command), "token", command)

    def _open_session(self, request: Request) -> Response:
        """The cookie for the token in the body; behind an engine's proxy, which drops cookies, no path for one."""
        cookie = self.source.access.open_session(str(_wish(request.body).get("token", "")))
        if not self.source.owns_origin(request):
            return respond({"path": ""}, request)
        answer = respond({"path": self.source.access.place}, request)
        return replace(answer, headers={**answer.headers, "Set-Cookie": cookie})

    async def _job(self, job_id: str) -> JobSource:
        job = await self.source.job(job_id)
        if job is None:
            only = f"; this is the page of {self.source.only}" if self.source.only else ""
            raise ApiError(404, f"no job {job_id[:80]}{only}", "job")
        return job

    async def _kept(self, call: Route, asked: ApiRequest) -> Response:
        wanted = {name: value for name, value in asked.query.items() if name not in ("since", "token", "open")}
        key = f"{asked.request.path}?{urllib.parse.urlencode(sorted(wanted.items()))}"
        version = asked.job.version if asked.job else self.source.version
        make = handler(call)
        now = asyncio.get_running_loop().time()
        version, packed = await self._rendered.get(key, version, now, lambda: make(asked))
        if asked.query.get("since") == str(version):
            return respond({"version": version, "unchanged": True}, asked.request)
        return _packed(packed, asked.request)

    async def _act(self, request: Request, path: str) -> Response:
        parts = path.split("/", 3)
        if len(parts) != 4 or parts[0] != "jobs" or parts[2] != "actions":
            raise ApiError(405, f"only actions of a job take {request.method}")
        wish = self._allowed(request, parts[1])
        job = await self._job(parts[1])
        return respond(await job.act(parts[3], wish), request)

    def _allowed(self, request: Request, job_id: str) -> dict[str, Any]:
        """The words of a wish of somebody who may have it."""
        wish = _wish(request.body)
        if not self.source.may_act(job_id, str(wish.pop("token", ""))):
            raise ApiError(403, ACT_HINT, "token")
        return wish

    async def _answer_as(self, module: str, request: Request) -> Response:
        acts = request.method in ("PUT", "POST")
        if acts:
            self._allowed(request, self.source.only)
        else:
            _looking(request)
            if not self.source.may_view(request):
                raise self._look_refusal()
        one = await self._job(self.source.only)
        system = importlib.import_module(module)
        kind, body = await (system.act if acts else system.look)(one, request)
        return packed(Response(200, body, kind, ANSWER_HEADERS), request)


def _looking(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise ApiError(
            403 if request.method == "POST" else 405, "a change needs a signed request, or an action's token"
        )


def _wish(body: bytes) -> dict[str, Any]:
    try:
        wish = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is no JSON") from None
    if not isinstance(wish, dict):
        raise ApiError(400, "the body must be a JSON object")
    return wish


def respond(value: Any, request: Request) -> Response:
    """`value` as JSON, compressed where that is worth it."""
    return packed(Response(200, compact(value), headers=ANSWER_HEADERS), request)


def packed(response: Response, request: Request) -> Response:
    """The same answer, compressed where that is worth it."""
    if len(response.body) < WORTH_PACKING or not _takes_gzip(request):
        return response
    headers = {**response.headers, "Content-Encoding": "gzip"}
    return Response(response.status, pack(response.body), response.content_type, headers)


def _packed(packed: bytes, request: Request) -> Response:
    if not _takes_gzip(request):
        return Response(200, unpack(packed), headers=ANSWER_HEADERS)
    return Response(200, packed, headers={**ANSWER_HEADERS, "Content-Encoding": "gzip"})


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def error_response(refused: RequestRefused) -> Response:
    """Return the JSON answer, for people and programs, that says why a request is refused."""
    said = {"error": str(refused), "place": refused.place}
    if isinstance(refused, ApiError) and refused.command:
        said["command"] = refused.command
    return Response(status_of(refused), compact(said), headers=ANSWER_HEADERS)
