"""From an HTTP request to its answer: static files of the page, the calls of `routes.ROUTES`, and actions.

The rule: only PUT or POST on an action changes anything, and needs a token that lets its holder act (docs/adr/0008).
A browser exchanges the token of its link for a cookie by PUT on `session` (docs/adr/0015).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from howdah.api import static_files
from howdah.api.answer_language import request_language, translate_answer
from howdah.api.errors import LinkNeeded, MethodNotAllowed, status_of
from howdah.api.http_server import Request, Response
from howdah.api.response_cache import ResponseCache, compact_json, pack, unpack
from howdah.api.routes import ACTIONS, PREFIX, ApiRequest, Route, handler, match
from howdah.api.sources import JobSource, Source
from howdah.errors import InvalidRequest, JobNotFound, NotFound, NotPermitted, RequestRefused
from howdah.locale.messages import render

ANSWER_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
VIEW_HINT = "you need an access link: run `{command}` and open what it prints"
ACT_HINT = "this needs a link that permits changes: `howdah page ID` prints one, valid for 12 hours"
SESSION = f"{PREFIX}session"
MIN_COMPRESSED_BYTES = 1024
# Paths of another system's API. Each is answered by a module that is imported at the first request.
_OTHER_SYSTEMS = {"/ws/": "howdah.compat.xlearning.rest"}


class ApiRouter:
    """Answers requests about the jobs of a source. The server has checked Host and Origin before."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._cache = ResponseCache()

    async def answer(self, request: Request) -> Response:
        """Answer a request; an error is answered as `{"error": line, "place": parameter}`."""
        try:
            return await self._answer(request)
        except RequestRefused as refused:
            return error_response(refused, request)

    async def _answer(self, request: Request) -> Response:
        page_path = self.source.access.page_path
        if request.target.startswith(page_path):  # the browser sends the page's cookie below this path
            request.target = request.target[len(page_path) - 1 :]
        path = request.path
        if path == "/metrics":
            path = f"{PREFIX}jobs/{self.source.only_job_id}/metrics.prom"
        if path.startswith(PREFIX):
            if request.method in ("PUT", "POST"):
                if path == SESSION:
                    return self._open_session(request)
                return await self._execute_action(request, path[len(PREFIX) :])
            _require_get(request)
            return await self._call(request, path[len(PREFIX) :])
        for prefix, module in _OTHER_SYSTEMS.items() if self.source.only_job_id else ():
            if path.startswith(prefix):
                return await self._answer_as(module, request)
        _require_get(request)
        return static_files.answer(request)

    async def _call(self, request: Request, path: str) -> Response:
        found = match(path)
        if found is None:
            raise NotFound(f"nothing answers GET {request.path}; api/v1/openapi.json lists what does")
        route, path_params = found
        job_id = path_params.get("job", "")
        embeds = route.embeddable and self.source.access.may_embed(job_id, request)
        if not embeds and not self.source.access.may_view(request):
            raise self._view_refusal()
        job = await self._job(job_id) if "job" in path_params else None
        call = ApiRequest(request, self.source, job, path_params, request.query)
        if "open" in call.query:
            self.source.note_open_page(call.query["open"] == "hidden")
        if route.cached:
            return await self._cached_answer(route, call)
        value = await handler(route)(call)
        if isinstance(value, Response):
            return value
        return respond(translate_answer(value, route.answer, request_language(request)), request)

    def _view_refusal(self) -> LinkNeeded:
        command = self.source.link_command
        return LinkNeeded(VIEW_HINT.format(command=command), command)

    def _open_session(self, request: Request) -> Response:
        """Exchange the token in the body for a cookie; behind an engine's proxy, which drops cookies, set none."""
        cookie = self.source.access.open_session(str(_json_object(request.body).get("token", "")))
        if not self.source.owns_origin(request):
            return respond({"path": ""}, request)
        answer = respond({"path": self.source.access.page_path}, request)
        return replace(answer, headers={**answer.headers, "Set-Cookie": cookie})

    async def _job(self, job_id: str) -> JobSource:
        job = await self.source.job(job_id)
        if job is None:
            only = f"; this is the page of {self.source.only_job_id}" if self.source.only_job_id else ""
            raise JobNotFound(f"no job {job_id[:80]}{only}", "job")
        return job

    async def _cached_answer(self, route: Route, call: ApiRequest) -> Response:
        parameters = {name: value for name, value in call.query.items() if name not in ("since", "token", "open")}
        language = request_language(call.http)
        key = f"{language} {call.http.path}?{urllib.parse.urlencode(sorted(parameters.items()))}"
        version = call.job_or_none.version if call.job_or_none else self.source.version
        make = handler(route)
        now = asyncio.get_running_loop().time()

        async def localised_answer() -> Mapping[str, Any]:
            answer: Mapping[str, Any] = translate_answer(await make(call), route.answer, language)
            return answer

        version, packed = await self._cache.get(key, version, now, localised_answer)
        if call.query.get("since") == str(version):
            return respond({"version": version, "unchanged": True}, call.http)
        if _accepts_gzip(call.http):
            return Response(200, packed, headers={**ANSWER_HEADERS, "Content-Encoding": "gzip"})
        return Response(200, unpack(packed), headers=ANSWER_HEADERS)

    async def _execute_action(self, request: Request, path: str) -> Response:
        parts = path.split("/", 3)
        if len(parts) != 4 or parts[0] != "jobs" or parts[2] != "actions":
            raise MethodNotAllowed(f"only actions of a job take {request.method}")
        arguments = self._permitted_arguments(request, parts[1])
        job = await self._job(parts[1])
        answer = await job.act(parts[3], arguments)
        shape = next((action.answer for action in ACTIONS if action.name == parts[3]), "")
        return respond(translate_answer(answer, shape, request_language(request)), request)

    def _permitted_arguments(self, request: Request, job_id: str) -> dict[str, Any]:
        """Return the arguments of an action, if the token beside them permits it."""
        arguments = _json_object(request.body)
        if not self.source.access.may_act(job_id, str(arguments.pop("token", ""))):
            raise NotPermitted(ACT_HINT, "token")
        return arguments

    async def _answer_as(self, module: str, request: Request) -> Response:
        changes = request.method in ("PUT", "POST")
        if changes:
            self._permitted_arguments(request, self.source.only_job_id)
        else:
            _require_get(request)
            if not self.source.access.may_view(request):
                raise self._view_refusal()
        job = await self._job(self.source.only_job_id)
        system = importlib.import_module(module)
        kind, body = await (system.answer_post if changes else system.answer_get)(job, request)
        return compress_response(Response(200, body, kind, ANSWER_HEADERS), request)


def _require_get(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        refusal = NotPermitted if request.method == "POST" else MethodNotAllowed
        raise refusal("a change needs a signed request, or an action's token")


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    return value


def respond(value: Any, request: Request) -> Response:
    """Return `value` as a JSON response, compressed if that is worth it."""
    return compress_response(Response(200, compact_json(value), headers=ANSWER_HEADERS), request)


def compress_response(response: Response, request: Request) -> Response:
    """Return the same response, compressed if that is worth it."""
    if len(response.body) < MIN_COMPRESSED_BYTES or not _accepts_gzip(request):
        return response
    headers = {**response.headers, "Content-Encoding": "gzip"}
    return Response(response.status, pack(response.body), response.content_type, headers)


def _accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def error_response(refused: RequestRefused, request: Request) -> Response:
    """Return the JSON answer, for people and programs, that says why a request is refused."""
    said = {"error": render(str(refused), request_language(request)), "place": refused.place}
    if isinstance(refused, LinkNeeded):
        said["command"] = refused.command
    return Response(status_of(refused), compact_json(said), headers=ANSWER_HEADERS)
