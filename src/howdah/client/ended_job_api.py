"""What a server would answer of a job that has ended, made of its files and its engine's logs, for `howdah.Client`."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from howdah.api import metric_series, serializers, timeline
from howdah.api.handlers import logs
from howdah.api.sources import ApiError
from howdah.client.api_client import encoded, refused
from howdah.engines import Engine
from howdah.errors import SpecError, StagingError
from howdah.logs.search import LogQuery, QueryError, search_headed, whole_number
from howdah.logs.search_results import SearchResults
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec import JobReport
from howdah.spec.event_lines import parse_line
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.filesystem import filesystem

_LEFT_OUT = ('{"kind":"Used"', '{"kind":"Measured"')
_FILES = ("curves/", "checkpoints")


@dataclass(frozen=True)
class EndedJobApi:
    """One of them."""

    engine: Engine
    report: JobReport
    view: JobView

    def answer(self, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON of a call below `jobs/ID/`.

        Raises:
            SpecError: a parameter is wrong.
            StagingError: nothing answers it, or what it takes is gone.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        if path.startswith(_FILES):
            return asyncio.run(self._from_files(f"{path}?{encoded(query)}"))
        made = _MADE.get(path)
        if made is None:
            raise StagingError(f"{self.view.id} has ended: `howdah history` answers {path}")
        try:
            return made(self, given)
        except ApiError as error:
            raise refused(error.status, json.dumps({"error": str(error), "place": error.place}).encode()) from None
        except QueryError as error:
            raise SpecError.at(error.name, str(error)) from None
        except ValueError as error:
            raise SpecError.at("the call", str(error)) from None

    def _job(self, _: Mapping[str, str]) -> Mapping[str, Any]:
        return {"version": 0, **serializers.job(self.view, {}, self.view.finished)}

    def _tasks(self, _: Mapping[str, str]) -> Mapping[str, Any]:
        return {"version": 0, "tasks": serializers.tasks(self.view)}

    def _timeline(self, _: Mapping[str, str]) -> Mapping[str, Any]:
        return {"version": 0, **timeline.timeline(self.view)}

    def _events(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        uri = f"{self.report.directory}/events.jsonl"
        text = filesystem(uri, self.report.conf_dir).read_bytes(uri).decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line and not line.startswith(_LEFT_OUT)]
        since = max(0, int(query.get("since") or 0))
        chosen = lines[since : since + max(1, int(query.get("limit") or 1000))]
        records = filter(None, map(parse_line, chosen))
        return {"next": since + len(chosen), "events": [serializers.masked_record(record) for record in records]}

    def _series(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        wish = metric_series.SeriesQuery.of(query)
        tasks = metric_series.tasks_of(self.view, wish)
        read = functools.partial(metric_series.read, self.report.directory, self.report.conf_dir)
        found = [*metric_series.sampled(read, wish, tasks), *metric_series.told(self.view, wish, tasks)]
        return {"version": 0, "names": metric_series.names(self.view), "series": found}

    def _search(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        began, wish, attempt = time.monotonic(), LogQuery.of(query), whole_number(query, "attempt", 0)
        stream = query.get("stream") or BOTH
        if stream not in (BOTH, *STREAMS):
            raise ValueError(f"stream is {stream[:40]!r}, must be stdout, stderr or both")
        tasks = logs.tasks_of(self.view, query.get("task", ""))
        read = functools.partial(self.engine.logs, self.view.id, tasks[0] if len(tasks) == 1 else None, "*")
        found = SearchResults(wish.limit)
        found.add(search_headed(read, wish, {str(task) for task in tasks}, attempt, stream))
        return found.answer(time.monotonic() - began)

    async def _from_files(self, target: str) -> Mapping[str, Any]:
        from howdah.api.handlers import curves
        from howdah.eventfiles import locations
        from howdah.eventfiles.client import EventFileService

        service = EventFileService()
        try:
            answer = await service.get(target, locations.of(self.view), curves.checkpoints(self.view))
        finally:
            await service.close()
        if answer.status != 200:
            raise refused(answer.status, answer.body)
        found: Mapping[str, Any] = json.loads(answer.body)
        return found


_MADE: Mapping[str, Callable[[EndedJobApi, Mapping[str, str]], Mapping[str, Any]]] = {
    "": EndedJobApi._job,
    "tasks": EndedJobApi._tasks,
    "timeline": EndedJobApi._timeline,
    "events": EndedJobApi._events,
    "series": EndedJobApi._series,
    "search": EndedJobApi._search,
}
