"""Tests the history server's answers over its own port, with real directories."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from history_jobs import BEGAN, begun, container, ended, job_id, launched, whole, write

from howdah import Client
from howdah.api import recorded_log
from howdah.api.recorded_log import RecordedLog
from howdah.engines.local.engine import LocalEngine
from howdah.errors import EngineUnavailable, StagingError
from howdah.history import csv_tables
from howdah.history.job_log_cache import JobLogCache
from howdah.history.options import HistoryOptions, ShownCluster, key_of, root_of
from howdah.history.running_jobs import page_of
from howdah.history.server import HistoryServer
from howdah.spec import JobReport, State, TaskId, event_lines, uris
from howdah.spec.events import Noted, Used
from howdah.spec.usage import Usage
from howdah.spec.view import JobView
from howdah.storage.local import LocalFileSystem
from howdah.wire import auth


class Caller:
    """Asks one server."""

    def __init__(self, link: str) -> None:
        self.base, _, self.token = link.partition("/#token=")

    def get(self, path: str, token: str = "", **headers: str) -> tuple[int, Any]:
        """Status and JSON."""
        mark = "&" if "?" in path else "?"
        address = f"{self.base}/api/v1/{path}{mark}token={token or self.token}"
        return self._answer(urllib.request.Request(address, headers=headers))

    def act(
        self, job: str, action: str, token: str, headers: dict[str, str] | None = None, **words: Any
    ) -> tuple[int, Any]:
        """Status and JSON of an action."""
        body = json.dumps({"token": token, **words}).encode()
        address = f"{self.base}/api/v1/jobs/{job}/actions/{action}"
        return self._answer(urllib.request.Request(address, body, headers or {}, method="PUT"))

    @staticmethod
    def _answer(request: urllib.request.Request) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def options(tmp_path: Path, **more: Any) -> HistoryOptions:
    engine = LocalEngine({"local_home": str(tmp_path / "home")})
    return HistoryOptions((ShownCluster(engine, root_of(engine, "me")),), tmp_path / "state", **more)


async def until_it_serves(server: HistoryServer, links: list[str], running: asyncio.Future[None]) -> None:
    """Wait until the server has named its address and read the directories once."""
    deadline = time.monotonic() + 60
    while not links or server.index.version < 2:
        assert time.monotonic() < deadline, "the server has not named its address, or not read the directories"
        await asyncio.sleep(0.02)
        if running.done():
            running.result()


@contextlib.asynccontextmanager
async def serving(made: HistoryOptions) -> AsyncIterator[tuple[HistoryServer, Caller]]:
    links: list[str] = []
    server = HistoryServer(made, links.append)
    running = asyncio.ensure_future(server.run())
    try:
        await until_it_serves(server, links, running)
        yield server, Caller(links[0])
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def ask(made: HistoryOptions, questions: Callable[[HistoryServer, Caller], Any]) -> Any:
    """Run `questions` in a thread beside the server."""

    async def main() -> Any:
        async with serving(made) as (server, caller):
            return await asyncio.to_thread(questions, server, caller)

    return asyncio.run(main())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    whole(tmp_path / "home", 1)
    whole(tmp_path / "home", 2, State.FAILED, "why it failed", queue="prod", env={"A": "1", "DB_PASSWORD": "s3cret"})
    return tmp_path / "home"


class TestAnswers:
    def test_the_list_and_a_job(self, tmp_path: Path, home: Path) -> None:
        def questions(_: HistoryServer, caller: Caller) -> None:
            status, listed = caller.get("jobs")
            assert (status, listed["total"], listed["problems"]) == (200, 2, [])
            assert caller.get(f"jobs?since={listed['version']}")[1]["unchanged"] is True
            assert caller.get("server")[1]["kind"] == "history"
            _, job = caller.get(f"jobs/{job_id(2)}")
            assert (job["state"], job["diagnostics"], job["queue"]) == ("FAILED", "why it failed", "prod")
            assert job["can"] == {"annotate": True}
            _, tasks = caller.get(f"jobs/{job_id(2)}/tasks")
            assert [task["state"] for task in tasks["tasks"]] == ["FAILED", "FAILED"]
            assert caller.get(f"jobs/{job_id(2)}/timeline")[0] == 200
            _, events = caller.get(f"jobs/{job_id(2)}/events?limit=2")
            assert [record["kind"] for record in events["events"]] == ["JobStarted", "Launched"]
            assert {row["user"]: row["wasted_gpu_hours"] for row in caller.get("users")[1]["users"]} == {
                "user1": 0.0,
                "user2": 2.0,
            }
            assert caller.get("jobs/nobody")[0] == 404
            assert caller.get("jobs?sort=x")[0] == 400

        ask(options(tmp_path), questions)

    def test_two_jobs_side_by_side(self, tmp_path: Path, home: Path) -> None:
        def questions(_: HistoryServer, caller: Caller) -> None:
            _, found = caller.get(f"compare?jobs={job_id(1)},{job_id(2)}")
            spec = {row["path"]: (row["a"], row["b"]) for row in found["spec"]}
            assert spec["queue"] == (None, "prod")
            assert spec["env"] == (None, {"A": "1", "DB_PASSWORD": "***"})
            assert [row["id"] for row in found["jobs"]] == [job_id(1), job_id(2)]
            assert [row["params"] for row in found["jobs"]] == [{}, {"A": "1", "DB_PASSWORD": "***"}]
            _, several = caller.get(f"compare?jobs={job_id(1)},{job_id(2)},{job_id(1)}&equal=1")
            values = {row["path"]: row["values"] for row in several["spec"]}
            assert values["queue"] == [None, "prod", None]
            assert values["roles.worker.command"] == ["train"] * 3
            assert caller.get("compare?jobs=")[0] == caller.get(f"compare?jobs={'x,' * 10}x")[0] == 400
            assert caller.get(f"compare?jobs={job_id(1)},nix")[0] == 404

        ask(options(tmp_path), questions)

    def test_a_job_alone_is_compared_with_the_last_run_of_its_name(self, tmp_path: Path) -> None:
        for number, queue in ((1, "old"), (4, "fast"), (7, "slow")):
            whole(tmp_path / "home", number, name="digits", queue=queue)  # all of one user
        whole(tmp_path / "home", 5, name="digits")  # another user's
        whole(tmp_path / "home", 6, name="digits-2")

        def questions(_: HistoryServer, caller: Caller) -> None:
            _, found = caller.get(f"compare?jobs={job_id(7)}")
            assert [row["id"] for row in found["jobs"]] == [job_id(4), job_id(7)]
            assert {row["path"]: (row["a"], row["b"]) for row in found["spec"]} == {"queue": ("fast", "slow")}
            status, answer = caller.get(f"compare?jobs={job_id(1)}")
            assert (status, answer["error"]) == (404, f"there is no earlier run of the name of {job_id(1)}")

        ask(options(tmp_path), questions)

    def test_the_list_and_the_hours_as_files(self, tmp_path: Path, home: Path) -> None:
        def questions(_: HistoryServer, caller: Caller) -> None:
            rows = {
                "jobs.csv?columns=id,queue,param:A&user=user2": f"id,queue,param:A\r\n{job_id(2)},prod,1\r\n",
                "users.csv?by=queue&queue=prod": "queue,jobs,gpu_hours,cpu_hours,memory_gib_hours,wasted_gpu_hours\r\n",
            }
            for address, begin in rows.items():
                with urllib.request.urlopen(f"{caller.base}/api/v1/{address}&token={caller.token}") as answer:
                    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
                    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
                    assert answer.read().decode().startswith(begin)
            assert caller.get("jobs.csv?columns=moon")[0] == caller.get("users.csv?by=moon")[0] == 400

        ask(options(tmp_path), questions)

    def test_the_name_of_a_file_without_all_jobs_says_so(
        self, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(csv_tables, "MAX_ROWS", 1)

        def questions(_: HistoryServer, caller: Caller) -> None:
            names = {"": "jobs-1-of-2.csv", "&user=user2": "jobs.csv"}
            for query, name in names.items():
                with urllib.request.urlopen(f"{caller.base}/api/v1/jobs.csv?token={caller.token}{query}") as answer:
                    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'

        ask(options(tmp_path), questions)

    def test_back_to_the_job(self, tmp_path: Path, home: Path) -> None:
        def questions(_: HistoryServer, caller: Caller) -> None:
            status, found = caller.get(f"trace?of={container(2, 1)}")
            assert (status, found["job"], found["task"]) == (200, job_id(2), "worker:1")
            assert found["url"] == f"./#/jobs/{job_id(2)}/tasks/worker:1"
            assert caller.get("trace?of=nothing")[0] == 404
            assert caller.get("trace?of=")[0] == 400

        ask(options(tmp_path), questions)

    def test_what_a_task_printed(self, tmp_path: Path) -> None:
        where = tmp_path / "home" / "jobs" / "local-1"
        write(tmp_path / "home", "local-1", [next(begun(1)), *launched(1, 0, BEGAN, 1, 1), *ended(1)])
        text = (where / "events.jsonl").read_text().replace('"engine":"yarn"', '"engine":"local"')
        (where / "events.jsonl").write_text(text)
        for attempt in (1, 2):
            directory = where / "tasks" / "worker-0" / str(attempt)
            directory.mkdir(parents=True)
            (directory / "stdout").write_text(f"attempt {attempt}\n" + "line\n" * 1000)

        def questions(_: HistoryServer, caller: Caller) -> None:
            _, end = caller.get("jobs/local-1/logs/worker:0?stream=stdout&offset=-10&limit=100")
            assert (end["text"], end["size"], end["complete"]) == ("line\nline\n", 5010, True)
            _, first = caller.get("jobs/local-1/logs/worker:0?stream=stdout&attempt=2&offset=0&limit=9")
            assert (first["text"], first["next"]) == ("attempt 2", 9)
            assert caller.get("jobs/local-1/logs/worker:0?stream=stdout&attempt=7")[0] == 404
            assert caller.get("jobs/local-1/logs/worker:9?stream=stdout")[0] == 404

        ask(options(tmp_path), questions)

    def test_a_long_log_comes_through_a_client_as_it_is(self, tmp_path: Path) -> None:
        where = tmp_path / "home" / "jobs" / "local-1"
        write(tmp_path / "home", "local-1", [next(begun(1)), *launched(1, 0, BEGAN, 1, 1), *ended(1)])
        text = (where / "events.jsonl").read_text().replace('"engine":"yarn"', '"engine":"local"')
        (where / "events.jsonl").write_text(text)
        directory = where / "tasks" / "worker-0" / "1"
        directory.mkdir(parents=True)
        printed = "x" + "训练完成，损失😀\n" * 100_000  # several answers, which end within characters
        (directory / "stdout").write_text(printed)

        def questions(_: HistoryServer, caller: Caller) -> None:
            client = Client(f"{caller.base}/#token={caller.token}")
            assert "".join(client.logs("local-1", "worker:0", "stdout")) == printed
            target = f"{caller.base}/api/v1/jobs/local-1/logs/worker:0/download?stream=stdout&token={caller.token}"
            with urllib.request.urlopen(target, timeout=60) as answer:
                assert answer.read().decode() == printed

        ask(options(tmp_path), questions)

    def test_one_that_waits_and_has_no_log_yet(self, tmp_path: Path) -> None:
        (tmp_path / "home" / "jobs" / job_id(5)).mkdir(parents=True)

        def questions(_: HistoryServer, caller: Caller) -> None:
            assert caller.get("jobs")[1]["jobs"][0]["state"] == "PENDING"
            for path in ("", "/tasks", "/timeline", "/events"):
                assert caller.get(f"jobs/{job_id(5)}{path}")[0] == 200
            assert caller.get(f"jobs/{job_id(5)}")[1]["id"] == job_id(5)

        ask(options(tmp_path), questions)

    def test_a_living_job_is_on_its_own_page(self, tmp_path: Path) -> None:
        write(tmp_path / "home", job_id(5), begun(5))

        def questions(_: HistoryServer, caller: Caller) -> None:
            assert caller.get(f"jobs/{job_id(5)}")[1]["state"] == "RUNNING"
            status, told = caller.get(f"jobs/{job_id(5)}/logs/worker:0?stream=stdout")
            assert (status, "the job runs" in told["error"]) == (409, True)
            write(tmp_path / "home", job_id(5), ended(5))

        ask(options(tmp_path), questions)


class TestDoor:
    def test_who_has_no_token(self, tmp_path: Path, home: Path) -> None:
        def questions(_: HistoryServer, caller: Caller) -> None:
            for token in ("wrong", "ä", caller.token.upper()):
                assert caller.get("jobs", token=urllib.parse.quote(token))[0] == 403
            assert caller.get("jobs", token="x", Cookie="proxy-user=root")[0] == 403
            assert caller.get("jobs", Host="evil.example")[0] == 403
            assert caller.get("jobs", Origin="http://evil.example")[0] == 403

        ask(options(tmp_path), questions)

    def test_no_job_is_changed_from_here(self, tmp_path: Path, home: Path) -> None:
        made = options(tmp_path)
        token = auth.act_token(auth.derive(key_of(made.state), f"job {job_id(1)}"), 4e9)

        def questions(_: HistoryServer, caller: Caller) -> None:
            for action in ("cancel", "save", "check"):
                assert caller.act(job_id(1), action, token)[0] == 404

        ask(made, questions)

    def test_only_a_token_that_may_act_annotates(self, tmp_path: Path, home: Path) -> None:
        made = options(tmp_path)
        key = key_of(made.state)
        of_job = auth.act_token(auth.derive(key, f"job {job_id(1)}"), 4e9)

        def questions(_: HistoryServer, caller: Caller) -> None:
            for token in ("", caller.token, auth.session_token(key), auth.act_token(key, 5.0), f"{of_job}x"):
                assert caller.act(job_id(1), "annotate", token, archived=True)[0] == 403
            assert caller.act(job_id(2), "annotate", of_job, archived=True)[0] == 403
            assert caller.act(job_id(1), "annotate", of_job, headers={"Origin": "http://evil"}, archived=True)[0] == 403
            assert caller.get(f"jobs/{job_id(1)}/actions/annotate?archived=1")[0] == 404
            assert not (home / "annotations").exists()
            assert caller.act(job_id(1), "annotate", of_job, note="x" * 2001)[0] == 400
            assert caller.act("../jobs", "annotate", auth.act_token(key, 4e9), note="x")[0] in (404, 405)
            assert caller.act(job_id(1), "annotate", of_job, note="<b>", tags=["best"])[1]["tags"] == ["best"]
            assert caller.act(job_id(2), "annotate", auth.act_token(key, 4e9), archived=True)[0] == 200
            found = caller.get("jobs?archived=also")[1]["jobs"]  # at once, before the next scan
            assert [(job["note"], job["tags"], job["archived"]) for job in found] == [
                ("", [], True),
                ("<b>", ["best"], False),
            ]
            assert caller.get(f"jobs/{job_id(1)}/row")[1]["note"] == "<b>"
            assert caller.get(f"jobs/{job_id(1)}")[1]["can"] == {"annotate": True}
            assert caller.get(f"jobs/{job_id(9)}/row")[0] == 404

        ask(made, questions)

    def test_the_servers_key_is_kept_and_private(self, tmp_path: Path) -> None:
        first = key_of(tmp_path / "s")
        assert key_of(tmp_path / "s") == first
        assert (tmp_path / "s" / "key").stat().st_mode & 0o077 == 0
        assert [path.name for path in (tmp_path / "s").iterdir()] == ["key"]

    @pytest.mark.parametrize("kept", ["", "ab" * 31, "zz" * 32])
    def test_what_is_no_whole_key_makes_no_tokens(self, tmp_path: Path, kept: str) -> None:
        (tmp_path / "key").write_text(kept)
        with pytest.raises(StagingError, match="is not a key; remove it"):
            key_of(tmp_path)


class Faltering(LocalFileSystem):
    """Its server goes away after `reads` reads."""

    reads = 1_000_000

    def open_read(self, uri: str) -> BinaryIO:
        opened = super().open_read(uri)
        read = opened.read

        def counted(size: int = -1) -> bytes:
            self.reads -= 1
            if self.reads < 0:
                raise EngineUnavailable("the NameNode does not answer")
            return read(size)

        opened.read = counted  # type: ignore[method-assign]
        return opened


class TestLogCache:
    @pytest.mark.parametrize("reads", [0, 1])
    def test_a_file_system_that_went_away_has_taken_nothing(self, tmp_path: Path, reads: int) -> None:
        files = Faltering()
        log = write(tmp_path, job_id(1), begun(1))
        held = JobLogCache(lambda id_, directory: RecordedLog(id_, directory, files))
        row = {"id": job_id(1), "state": "RUNNING", "finished": 0.0, "diagnostics": ""}

        async def look() -> JobView:
            for one in held._logs.values():
                one.checked_at = float("-inf")
            return (await held.get(row, uris.of_local(log.parent))).view

        async def questions() -> None:
            assert (await look()).state is State.RUNNING
            write(tmp_path, job_id(1), ended(1))
            files.reads = reads
            with pytest.raises(EngineUnavailable):
                await look()
            files.reads = 1_000_000
            assert (await look()).state is State.SUCCEEDED

        asyncio.run(questions())

    @pytest.mark.parametrize("behind", [100, 1000, 100_000])
    def test_a_log_that_is_hardly_too_large_is_read_to_its_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: int
    ) -> None:
        monkeypatch.setattr(recorded_log, "MAX_BYTES", 2 << 20)
        noted = event_lines.to_line(Noted(BEGAN, "n" * 1000))
        log = write(tmp_path, job_id(1), begun(1), more=noted * (((3 << 20) + behind) // len(noted)))
        held = RecordedLog(job_id(1), uris.of_local(log.parent), LocalFileSystem())
        held.apply(held.read())
        write(tmp_path, job_id(1), ended(1, State.FAILED, "the end"))  # which is little, later
        held.apply(held.read())
        assert (held.view.state, len(held.lines)) == (State.FAILED, len(log.read_bytes().splitlines()))


class TestPages:
    def test_hostile_roles_stay_in_their_directory(self, tmp_path: Path) -> None:
        log = whole(tmp_path / "home", 1)
        log.write_text(log.read_text().replace('"worker"', '"../../../../escaped"').replace('"yarn"', '"local"'))

        def questions(_: HistoryServer, caller: Caller) -> None:
            task = urllib.parse.quote("../../../../escaped:0", safe="")
            assert caller.get(f"jobs/{job_id(1)}/logs/{task}?stream=stdout")[0] in (404, 400)

        ask(options(tmp_path), questions)
        assert not list(tmp_path.rglob("*escaped*/stdout"))
        assert {path.name for path in tmp_path.iterdir()} == {"home", "state"}

    def test_samples_between_two_events_count_once(self) -> None:
        task = TaskId("worker", 0)
        used = [event_lines.to_line(Used(BEGAN + at, task, Usage(memory_mib=float(at)))).encode() for at in range(100)]
        other = event_lines.to_line(Noted(BEGAN, "x")).encode()
        assert list(recorded_log.latest_use([*used, other, *used[:5]])) == [used[-1], other, used[4]]

    def test_a_log_too_large_shows_its_beginning_and_its_end(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        long = event_lines.to_line(Noted(BEGAN, "n" * 100_000))
        write(home, job_id(1), begun(1), more=long * 700)
        write(home, job_id(1), ended(1, State.FAILED, "the end"))

        def questions(_: HistoryServer, caller: Caller) -> None:
            _, job = caller.get(f"jobs/{job_id(1)}")
            assert (job["state"], job["diagnostics"], job["name"]) == ("FAILED", "the end", "job-1")

        ask(options(tmp_path), questions)


def test_the_link_to_a_living_jobs_page_keeps_its_token_from_servers(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ab" * 32)
    report = JobReport("job-1", "j", State.RUNNING, "local", directory=f"file://{tmp_path}", master="http://node1:4711")
    assert page_of(LocalEngine({}), report) == f"http://node1:4711/#token={auth.view_token(bytes.fromhex('ab' * 32))}"
