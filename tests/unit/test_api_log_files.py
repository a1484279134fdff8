"""Tests the archive of the logs of all tasks, the merged log, and the matches of a search as a file."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from howdah.api.handlers import log_downloads, logs, merged_logs
from howdah.api.http_server import Request, Response
from howdah.api.routes import ApiRequest
from howdah.errors import AnswerTimeout, NotFound, NotReady
from howdah.logs.query import LogMatch, LogQuery
from howdah.logs.stream_index import STREAMS, StreamIndex, read_both
from howdah.spec import TaskId
from howdah.spec.attempt import AttemptView
from howdah.spec.view import JobView, TaskView
from howdah.wire.messages import LogChunk

Printed = dict[tuple[str, int, str], bytes]


@dataclass
class Job:
    """Of tasks that have printed `printed`: by task, attempt and stream."""

    printed: Printed
    broken: set[str] = field(default_factory=set)
    """Tasks whose executor does not answer after the first piece."""
    hits: tuple[LogMatch, ...] = ()
    searched: list[LogQuery] = field(default_factory=list)
    most: int = 0
    """The longest piece that was read."""

    @property
    def view(self) -> JobView:
        tasks: dict[TaskId, TaskView] = {}
        for name, attempt, _ in self.printed:
            task = tasks.setdefault(TaskId.parse(name), TaskView(TaskId.parse(name)))
            if attempt not in [each.attempt for each in task.attempts]:
                task.attempts.append(AttemptView(attempt))
            task.attempt = attempt
        return JobView(id='job"\r\n-1', tasks=tasks)

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        attempt = attempt or self.view.tasks[task].attempt
        streams = {name: self.printed.get((str(task), attempt, name), b"") for name in (*STREAMS, "times")}
        if str(task) in self.broken and offset:
            raise AnswerTimeout("no answer")
        if stream == "both":
            sizes = {name: len(streams[name]) for name in STREAMS}
            read = lambda name, start, most: (start, streams[name][start : start + most])  # noqa: E731
            start, data = read_both(StreamIndex.parse(streams["times"]), sizes, read, offset, limit)
            size = sum(sizes.values())
        else:
            size = len(streams[stream])
            start = max(0, size + offset) if offset < 0 else offset
            data = streams[stream][start : start + limit]
        self.most = max(self.most, len(data))
        return LogChunk(request=0, offset=start, size=size, text=data.decode("latin-1"))

    async def search(self, query: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        self.searched.append(query)
        return {"hits": [asdict(hit) for hit in self.hits], "complete": not self.hits, "problems": []}


def called(job: Job, **query: str) -> ApiRequest:
    request = Request("GET", "/", {"accept-language": query.pop("language", "en")}, b"", "127.0.0.1")
    return ApiRequest(request, None, job, {}, query)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert logs.CountedDownload.open_downloads == 0


def unpacked(job: Job, **query: str) -> tuple[Response, dict[str, bytes]]:
    """The answer of the call, and the files of its archive."""

    async def run() -> tuple[Response, bytes]:
        response = await log_downloads.archive(called(job, **query))
        assert response.pieces is not None
        data = b"".join([piece async for piece in response.pieces])
        await response.pieces.aclose()
        return response, data

    response, data = asyncio.run(run())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return response, {name: archive.read(name) for name in archive.namelist()}


LONG = "第一行\n".encode() * 200_000
PRINTED: Printed = {
    ("chief:0", 1, "stdout"): b"one\n",
    ("worker:0", 1, "stdout"): LONG,
    ("worker:0", 1, "stderr"): b"",
    ("worker:0", 2, "stderr"): b"two\n",
}


def test_the_archive_has_the_logs_of_all_attempts() -> None:
    job = Job(PRINTED)
    response, files = unpacked(job)
    names = {("chief-0/1/stdout.txt", b"one\n"), ("worker-0/1/stdout.txt", LONG), ("worker-0/2/stderr.txt", b"two\n")}
    assert set(files.items()) == names
    assert job.most <= logs.PIECE_BYTES
    assert response.headers["Content-Disposition"] == 'attachment; filename="job___-1-logs.zip"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert set(unpacked(job, task="chief")[1]) == {"chief-0/1/stdout.txt"}
    with pytest.raises(NotFound):
        unpacked(job, task="nobody")


def test_names_lead_out_of_no_directory() -> None:
    assert set(unpacked(Job({("../a/b:0", 1, "stdout"): b"x"}))[1]) == {"___a_b-0/1/stdout.txt"}


def test_the_archive_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, files = unpacked(Job(PRINTED, broken={"worker:0"}))
    assert LONG.startswith(files["worker-0/1/stdout.txt"])
    assert files["LEFT-OUT.txt"] == b"worker-0/1/stdout.txt: no answer\n"
    monkeypatch.setattr(log_downloads, "MAX_ARCHIVE_BYTES", 1000)
    _, files = unpacked(Job(PRINTED), language="zh")
    assert len(files["worker-0/1/stdout.txt"]) == 1000 - len(b"one\n")
    early, *missing = files["LEFT-OUT.txt"].decode().splitlines()
    assert early == "worker-0/1/stdout.txt: 提前结束：压缩包已达到 1000 字节"
    assert missing[-1] == "worker-0/2/stderr.txt: 压缩包已达到 1000 字节"


def test_archives_are_few_at_once() -> None:
    async def run() -> None:
        opened = [await log_downloads.archive(called(Job(PRINTED))) for _ in range(logs.MAX_DOWNLOADS)]
        with pytest.raises(NotReady):
            await log_downloads.archive(called(Job(PRINTED)))
        for response in opened:
            assert response.pieces is not None
            await response.pieces.aclose()

    asyncio.run(run())


MERGED: Printed = {
    ("worker:0", 1, "stdout"): b"a1\na3\n",
    ("worker:0", 1, "times"): b"1.0 0 0 0 0\n3.0 3 0 1 0\n",
    ("worker:1", 2, "stdout"): b"b2\n",
    ("worker:1", 2, "stderr"): b"b4\xff",
    ("worker:1", 2, "times"): b"2.0 0 0 0 0\n4.0 3 0 1 0\n",
}


def merged(job: Job, **query: str) -> Any:
    return asyncio.run(merged_logs.merged(called(job, **query)))


def test_lines_of_all_tasks_are_merged_by_time() -> None:
    found = merged(Job(MERGED))
    assert [(line["task"], line["text"], line["time"]) for line in found["lines"]] == [
        ("worker:0", "a1", 1.0),
        ("worker:1", "b2", 2.0),
        ("worker:0", "a3", 3.0),
        ("worker:1", "b4\ufffd", 4.0),
    ]
    assert [(line["attempt"], line["offset"]) for line in found["lines"]] == [(1, 0), (2, 0), (1, 3), (2, 3)]
    assert (found["complete_since"], found["tasks"], found["left_out"], found["problems"]) == (0.0, 2, 0, [])
    assert [line["text"] for line in merged(Job(MERGED), task="worker:1")["lines"]] == ["b2", "b4\ufffd"]


def test_of_long_logs_the_last_whole_lines_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_logs, "MAX_TASK_BYTES", 5)
    found = merged(Job(MERGED))
    assert [line["text"] for line in found["lines"]] == ["a3", "b4\ufffd"]
    assert found["complete_since"] == 4.0


def test_of_a_progress_bar_that_goes_on_the_last_state_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_logs, "MAX_TASK_BYTES", 12)
    bar = b"10%|#   |\r20%|##  |\r30%|### |\r"
    found = merged(Job({("worker:0", 1, "stdout"): bar, ("worker:0", 1, "times"): b"5.0 0 0 0 0\n"}))
    assert [(line["text"], line["time"]) for line in found["lines"]] == [("30%|### |", 5.0)]
    assert found["complete_since"] == 5.0


def test_of_an_index_no_more_is_read_than_its_end() -> None:
    count = 16_000  # lines that are shorter than their lines of the index
    times = b"".join(b"%d.000 %d 0 %d 0\n" % (1_000_000_000 + at, 5 * at, at) for at in range(count))
    job = Job({("worker:0", 1, "stdout"): b"abcd\n" * count, ("worker:0", 1, "times"): times})
    found = merged(job)
    *_, last = lines = found["lines"]
    assert len(lines) == merged_logs.MAX_TASK_BYTES // 5
    assert (last["time"], last["stream"]) == (1_000_000_000 + count - 1, "stdout")
    assert (lines[0]["time"], lines[0]["stream"]) == (None, "")
    known = next(line for line in lines if line["time"])
    assert (known["time"], known["stream"]) == (found["complete_since"], "stdout")
    assert known["time"] == 1_000_000_000 + known["offset"] / 5
    assert job.most <= merged_logs.INDEX_SHARE * merged_logs.MAX_TASK_BYTES < len(times)


def test_not_more_tasks_are_merged_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_logs, "MAX_TASKS", 1)
    found = merged(Job(MERGED))
    assert ({line["task"] for line in found["lines"]}, found["tasks"], found["left_out"]) == ({"worker:0"}, 1, 1)


def test_a_log_that_cannot_be_read_is_named() -> None:
    found = merged(Job(MERGED, broken={"worker:0"}))
    assert {line["task"] for line in found["lines"]} == {"worker:1"}
    assert found["problems"] == ["worker:0: no answer"]


def test_matches_come_as_a_file() -> None:
    red = LogMatch("worker:0", 1, "stderr", 7, 3, "\x1b[31mError: no\tdisk\x1b[0m", "error", 1.5)
    job = Job(MERGED, hits=(red, LogMatch("worker:1", 2, "stdout", 0, 1, "x")))
    response = asyncio.run(log_downloads.search_matches(called(job, text="x")))
    assert response.body.decode().splitlines() == [
        "time\ttask\tattempt\tstream\tline\ttext",
        "1970-01-01T00:00:01.500+00:00\tworker:0\t1\tstderr\t3\tError: no\tdisk",
        "\tworker:1\t2\tstdout\t1\tx",
        "[howdah: there are more matches than these 2]",
    ]
    assert response.headers["Content-Disposition"].startswith("attachment; ")
    assert job.searched[0].limit == 2000
