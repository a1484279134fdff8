"""The master's one loop: events come in, `step` decides, and what it wants is done in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
import urllib.parse
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from howdah.data.fs import filesystem
from howdah.engines import Allocator, Launch, MasterContext
from howdah.errors import HowdahError
from howdah.frameworks import find
from howdah.master import actions as a
from howdah.master.api import Api
from howdah.master.eventlog import EventLog
from howdah.master.http import serve
from howdah.master.orders import Director
from howdah.master.outputs import commit_request
from howdah.master.state import GangState
from howdah.master.step import step
from howdah.spec import Exit, Outcome, StagedJob, State
from howdah.spec import events as e
from howdah.wire import auth
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX

TICK_S = 0.5
COMMIT_S = 600.0
LINGER_S = 0.1
"""After the end the API answers this long, so that a client that follows gets the last event."""

FOLLOWED_S, LAST_LINES_S = 3.0, 0.3
"""Who has read a log within the last 3 s gets this long to read its last lines before the containers go."""


@dataclass(frozen=True)
class Identity:
    """What the master was started with. `key` is the job key, `secrets` the user's secret variables."""

    job_id: str
    engine: str
    directory: str
    host: str
    staged: StagedJob
    key: bytes
    secrets: dict[str, bytes]


class Master:
    """Runs one job to its end."""

    def __init__(self, identity: Identity, allocator: type[Allocator]) -> None:
        framework = find(identity.staged.job.framework)
        self.identity, self.allocator_class = identity, allocator
        self.staged = replace(identity.staged, job=framework.expand(identity.staged.job))
        self.state = GangState.of(identity.job_id, self.staged.job)
        self.director = Director(identity.job_id, self.staged, framework)
        self.log = EventLog(identity.directory)
        self.api = Api(identity.key, self.state, self.director, self.log, self.apply, self._admits)
        self.allocator: Allocator | None = None
        self.context: MasterContext | None = None
        self._finished: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> Outcome:
        """Serve, register, form the gang, see it through, unregister."""
        await self._serve()
        await self._register()
        for work in (self._poll(), self._tick(), self.log.flush_forever()):
            self._spawn(work)
        outcome = await self._finished
        await self._leave(outcome)
        return outcome

    def fail(self, error: Exception) -> Outcome:
        """Write down that the master itself went wrong, as the job's end."""
        outcome = Outcome(State.FAILED, f"the master failed: {error if str(error) else type(error).__name__}")
        self.log.append(e.JobFinished(time.time(), outcome))
        return outcome

    async def _serve(self) -> None:
        host = self.identity.host
        self._server = await serve(self.api.handle, host)
        port = self._server.sockets[0].getsockname()[1]
        self.api.hosts = {f"{name}:{port}" for name in (host, "127.0.0.1", "localhost")}
        self.context = MasterContext(self.identity.job_id, self.staged, self.identity.directory, host, port)
        _announce(self.identity.directory, self.context.url)

    async def _register(self) -> None:
        assert self.context is not None
        self.allocator = await self.allocator_class.open(self.context)
        identity = self.identity
        python = f"{sys.version.split()[0]} {sys.executable}"
        self.apply(
            e.JobStarted(
                time.time(), identity.job_id, identity.engine, self.staged.user, self.staged.job, identity.host, python
            )
        )

    def _admits(self, peer: str, proxy_user: str) -> bool:
        return self.allocator is not None and self.allocator.admits(peer, proxy_user)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` beside the loop; a bug in it ends the master rather than being lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not self._finished.done():
            self._finished.set_exception(task.exception() or RuntimeError())

    async def _poll(self) -> None:
        assert self.allocator is not None
        while not self._finished.done():
            for event in await self.allocator.poll():
                self.apply(event)

    async def _tick(self) -> None:
        while not self._finished.done():
            await asyncio.sleep(TICK_S)
            self.apply(a.Tick(time.time()))

    def apply(self, event: e.Event) -> None:
        """Let `step` decide on `event` and do what it wants."""
        for action in step(self.state, event):
            self._perform(action)

    def _perform(self, action: a.Action) -> None:
        assert self.allocator is not None
        if isinstance(action, a.Record):
            self.log.append(action.event)
        elif isinstance(action, a.Notify):
            self.api.notify(action.tasks)
        elif isinstance(action, a.Ask):
            self.allocator.request(action.role, action.count)
        elif isinstance(action, a.Release):
            self.allocator.release(action.container_id)
        elif isinstance(action, a.Launch):
            self._spawn(self._launch(action))
        elif isinstance(action, a.Commit):
            self._spawn(self._commit(action.keep))
        elif not self._finished.done():
            self._finished.set_result(action.outcome)

    async def _launch(self, action: a.Launch) -> None:
        assert self.allocator is not None
        try:
            await self.allocator.launch(action.container, self._executor(action))
        except (HowdahError, OSError) as error:
            exit = Exit("start", detail=f"its container could not be started: {error}")
            self.apply(e.ContainerEnded(time.time(), action.container.id, exit))

    def _executor(self, action: a.Launch) -> Launch:
        assert self.context is not None
        task = str(action.task)
        key = auth.derive(self.identity.key, auth.executor_principal(task, action.attempt))
        environment = {
            "HOWDAH_MASTER": self.context.url,
            "HOWDAH_TASK": task,
            "HOWDAH_ATTEMPT": str(action.attempt),
            "HOWDAH_JOB_ID": self.identity.job_id,
            "HOWDAH_LOG_LIMIT_MIB": self.staged.settings.get("log_limit_mib") or "1024",
        }
        secrets = {SECRET_PREFIX + name: value for name, value in self.identity.secrets.items()}
        command = (self.staged.python, "-m", "howdah.executor")
        return Launch(action.task, action.attempt, command, environment, {**secrets, JOB_KEY: key})

    async def _commit(self, keep: bool) -> None:
        request = commit_request(self.state)
        verb = "commit" if keep else "discard"
        try:
            answer = await asyncio.wait_for(_run_helper("howdah.data.commit", verb, request), COMMIT_S)
        except (OSError, ValueError, TimeoutError, asyncio.TimeoutError) as error:
            answer = {"error": f"{verb}: {error or type(error).__name__}"}
        done = a.CommitDone(time.time(), tuple(answer.get("committed", ())), str(answer.get("error", "")))
        self.apply(done)

    async def _leave(self, outcome: Outcome) -> None:
        assert self.allocator is not None
        await self.log.flush()
        if time.monotonic() - self.api.log_read_at < FOLLOWED_S:
            await asyncio.sleep(LAST_LINES_S)
        for container_id in list(self.state.containers):
            self.allocator.release(container_id)
        await self.allocator.unregister(outcome, self.log.view.progress)
        await asyncio.to_thread(_forget_key, self.identity.directory)
        await asyncio.sleep(LINGER_S)
        await self.close()

    async def close(self) -> None:
        """Let go of everything."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.close()
        self.log.close()


def _forget_key(directory: str) -> None:
    """The last act: without its key a job is over and needs nobody to look after it."""
    with contextlib.suppress(HowdahError):
        filesystem(directory).delete(f"{directory.rstrip('/')}/key")


async def _run_helper(module: str, verb: str, request: Any) -> dict[str, Any]:
    """Run one of our own modules in a process of its own: what it needs does not stay in the master's memory."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        verb,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate(json.dumps(request).encode())
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    lines = output.decode("utf-8", "replace").strip().splitlines()
    if not lines:
        raise ValueError(f"{module} ended with status {process.returncode} and said nothing")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _announce(directory: str, url: str) -> None:
    """Tell those on this machine where the master listens; on a cluster the engine does."""
    parts = urllib.parse.urlsplit(directory)
    if parts.scheme != "file":
        return
    path = Path(urllib.parse.unquote(parts.path)) / "master.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    temporary.replace(path)
