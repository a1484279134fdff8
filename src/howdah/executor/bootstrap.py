"""`python -m howdah.executor.bootstrap` runs in a container that has nothing of its job yet: it asks the master what to
run, brings howdah and the job's files into the container, and becomes the executor (docs/adr/0017).

The environment names the master, the container and the file with the container's key (`howdah.wire.launch_messages`).
An archive with this module and what it imports (`howdah.staging.bootstrap_archive`) needs CPython 3.9 alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
import urllib.parse
from dataclasses import field
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from howdah.errors import HowdahError, StagingError
from howdah.executor.event_loop import EventLoop
from howdah.executor.master_link.channel import Channel
from howdah.spec import uris
from howdah.spec.codec import decode, encode
from howdah.spec.staged import MODULES, PY_SPY, RUNTIME, StagedFile
from howdah.spec.task import TaskId
from howdah.spec.values import dataclass
from howdah.staging.working_directory import prepare, unpack_archive
from howdah.wire import launch_messages
from howdah.wire.launch_messages import Greeting, LaunchOrder
from howdah.wire.messages import NOT_HEARD, NOT_WANTED

CANNOT_BEGIN = 78
"""The exit status of a bootstrap whose environment is wrong, or whose container cannot run the task."""
WAIT_S, AGAIN_S = 20.0, 1.0
SILENCE_LIMIT_S = 120.0
"""Seconds after which a container that hears no master ends: the master is gone, and its successor asks for another
container."""
LAUNCH_LIMIT_S = 900.0
"""Seconds after which a container ends if the master has no task for it."""
_ENDED = (404, 410)


@dataclasses.dataclass(frozen=True)
class Bootstrap:
    """The facts that a container has before it has asked the master."""

    master: str
    """The URL of the master's API."""
    container: str
    """The container's id."""
    key: bytes = field(repr=False)
    """The key by which the container signs."""
    host: str
    """The name or address by which others reach the container."""
    directory: Path
    """The container's own directory."""
    cache: Path
    """Where unpacked archives are kept."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts that the engine passes to its allocator, by name."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Bootstrap:
        """Read the variables and files that the engine has brought into the container.

        Raises:
            KeyError, ValueError, OSError: a variable is absent or wrong, or the key cannot be read.
        """
        directory = Path(environment.get(launch_messages.CONTAINER_DIRECTORY) or os.getcwd()).absolute()
        fact = launch_messages.FACT
        return cls(
            master=environment[launch_messages.MASTER],
            container=environment[launch_messages.CONTAINER],
            key=bytes.fromhex(Path(environment[launch_messages.KEY_FILE]).read_text(encoding="ascii").strip()),
            host=environment.get("HOWDAH_HOST") or os.uname().nodename,
            directory=directory,
            cache=Path(environment.get(launch_messages.CACHE_DIRECTORY) or directory / "cache"),
            facts={name[len(fact) :].lower(): value for name, value in environment.items() if name.startswith(fact)},
        )

    def greet(self, problem: str = "") -> LaunchOrder:
        """Tell the master that the container has started, or why it is of no use; return what it runs.

        Raises:
            ContainerNotUsed: the container is not wanted any more, no master answers, or the master has no task for it.
        """
        greeting = encode(Greeting(self.host, sys.version.split()[0], self.facts, problem))
        path = f"{launch_messages.path_of(self.container)}?wait={0 if problem else WAIT_S:g}"
        began = heard = time.monotonic()
        with contextlib.closing(_Connection(self)) as master:
            while True:
                now = time.monotonic()
                try:
                    order = decode(LaunchOrder, master.post(path, greeting, WAIT_S + 10))
                    heard = time.monotonic()
                except _NoAnswer as error:
                    if error.status in _ENDED:
                        raise ContainerNotUsed(NOT_WANTED, str(error)) from error
                    if problem or now - heard > SILENCE_LIMIT_S:
                        raise ContainerNotUsed(
                            NOT_HEARD, f"no master at {self.master} for {now - heard:.0f} s: {error}"
                        ) from error
                    time.sleep(AGAIN_S)
                    continue
                if order.task or problem:
                    return order
                if now - began > LAUNCH_LIMIT_S:
                    raise ContainerNotUsed(
                        NOT_HEARD, f"the master has had no task for this container for {now - began:.0f} s"
                    )

    def runtime(self, order: LaunchOrder) -> str:
        """Bring howdah into the container; return its directory, "" if the container has howdah already.

        Raises:
            StagingError: there is no room, or the master does not send it.
        """
        found = next((file for file in order.runtime if file.name == RUNTIME), None)
        if found is None:
            return ""
        archive = Path(uris.path(found.uri))
        if found.uri.startswith("file:") and archive.is_file():
            return str(unpack_archive(archive, self.cache))
        # Nobody else may write where `unpack_archive` looks for what has been unpacked: two levels above, too.
        archive = self.directory / "download" / "runtime" / uris.name(found.uri)
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(self._download_runtime())
        unpacked = unpack_archive(archive, self.cache)
        archive.unlink()
        return str(unpacked)

    def _download_runtime(self) -> bytes:
        from howdah.wire.connection import MasterConnection, WireError  # nodes that see the home do without

        path = launch_messages.path_of(self.container) + launch_messages.RUNTIME
        try:
            with MasterConnection(self.master, launch_messages.principal(self.container), self.key, 60.0) as master:
                return master.download(path)
        except WireError as error:
            raise StagingError(f"howdah's runtime archive: {error}") from error


class _NoAnswer(Exception):
    """The master has not answered, or refuses. `status` is the HTTP status of its answer; 0 if it sent none."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason.removeprefix(f"{status} ") if status else reason)
        self.status = status


class _Connection:
    """The executor's own channel to the master, used before there is an executor. Its modules are needed later
    anyway."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        self._loop, self._answer = EventLoop(), None
        self._failure: Optional[_NoAnswer] = None
        url = urllib.parse.urlsplit(bootstrap.master)
        address, principal = (url.hostname or "", url.port or 80), launch_messages.principal(bootstrap.container)
        self._channel = Channel(self._loop, address, principal, bootstrap.key, self._answered, self._failed)

    def post(self, path: str, message: Any, timeout: float) -> Any:
        """Return the answer to a message.

        Raises:
            _NoAnswer: there is none, or it has another status than 200.
        """
        self._channel.post(path, message, timeout)
        while self._channel.busy:
            self._loop.run_once()
        if self._failure is not None:
            raise self._failure
        return self._answer

    def close(self) -> None:
        self._channel.close()
        self._loop.close()

    def _answered(self, answer: Any) -> None:
        self._answer, self._failure = answer, None

    def _failed(self, reason: str, status: int) -> None:
        self._failure = _NoAnswer(reason, status)


class ContainerNotUsed(Exception):
    """The container ends with `status`, before it runs anything."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class OwnExecutor:
    """An interpreter that can run the executor, too: it sees the modules that executors of the job have."""

    python: str
    """The interpreter's path or name, as it was called."""
    run: Callable[[], int]
    """Runs the executor, and returns its exit status."""


def main(own: Optional[OwnExecutor] = None) -> int:
    """Become the executor. Return 75 if the master was not heard, 76 if the container is not wanted, 78 if nothing can
    be run here, else what `own` returns."""
    try:
        bootstrap = Bootstrap.from_environment(os.environ)
        run_task(bootstrap, dict(os.environ), own.python if own is not None else "")
    except (KeyError, ValueError, OSError) as error:
        print(f"this container cannot begin: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return CANNOT_BEGIN
    except ContainerNotUsed as error:
        print(error, file=sys.stderr, flush=True)
        return error.status
    assert own is not None
    return own.run()


def run_task(bootstrap: Bootstrap, environment: Dict[str, str], own_python: str = "") -> None:
    """Ask for a task, and become its executor; `own_python` as in `become_executor`.

    Raises:
        ContainerNotUsed: there is no task, or it cannot be run here.
    """
    order = bootstrap.greet()
    try:
        become_executor(bootstrap, order, environment, own_python)
    except (HowdahError, OSError) as error:
        with contextlib.suppress(ContainerNotUsed):  # the status has the details
            bootstrap.greet(problem=str(error))
        raise ContainerNotUsed(CANNOT_BEGIN, str(error)) from error


def become_executor(
    bootstrap: Bootstrap, order: LaunchOrder, environment: Dict[str, str], own_python: str = ""
) -> None:
    """Prepare the container for the task of `order`, and become its executor.

    The function returns if this process itself can run the executor: if the executor's Python is called `own_python`,
    and its modules are those of this process, whose import is most of an executor's start. The process then has the
    executor's variables.

    Raises:
        StagingError, OSError: the container cannot run it.
    """
    bootstrap.directory.mkdir(parents=True, exist_ok=True)
    tasks, logs = _log_directories(bootstrap, order, launch_messages.STORES_LOGS in environment)
    runtime = bootstrap.runtime(order)
    work = bootstrap.directory / "work"
    files = (*order.files, *_other_runtime_files(order))
    if not all(file.uri.startswith("file:") for file in files):
        from howdah.executor.job_downloads import with_downloads  # a container that sees all files starts sooner

        files = with_downloads(files, bootstrap.directory / "downloads", runtime)
    prepare(work, files, bootstrap.cache)
    if runtime:
        (work / RUNTIME).symlink_to(runtime)  # TensorBoard and the history server are run from there
    shipped = work / PY_SPY
    if shipped.is_file() and not os.access(shipped, os.X_OK):  # the home keeps no mode
        shipped.write_bytes(_take_link(shipped))
        shipped.chmod(0o700)
    credentials = os.memfd_create("howdah-credentials", 0)  # it survives an exec, and is on no disk
    os.write(credentials, launch_messages.unseal(bootstrap.key, bytes.fromhex(order.sealed)))
    facts = launch_messages.FACT
    private = (launch_messages.KEY_FILE, launch_messages.CONTAINER_DIRECTORY, launch_messages.CACHE_DIRECTORY)
    variables = {
        **{name: value for name, value in environment.items() if name not in private and not name.startswith(facts)},
        "HOWDAH_HOST": bootstrap.host,
        "HOWDAH_CREDENTIALS": f"/proc/self/fd/{credentials}",
        "HOWDAH_LOG_DIR": logs,
        "HOWDAH_WORK_DIR": str(work),
        **({"HOWDAH_TASKS_DIR": tasks} if tasks else {}),
        **({"PYTHONPATH": os.path.join(runtime, MODULES)} if runtime else {}),
        **order.environment,
    }
    os.chdir(bootstrap.directory)
    has_modules = sys.path[0] == os.path.join(runtime, MODULES)
    if has_modules and own_python and order.command == launch_messages.executor_command(own_python):
        os.environ.clear()
        os.environ.update(variables)
        return
    python, *arguments = order.command
    executable = python if os.path.isabs(python) else str(work / python) if "/" in python else python
    os.execvpe(executable, [executable, *arguments], variables)  # noqa: S606


def _take_link(path: Path) -> bytes:
    """Remove a link, and return the content of its target."""
    content = path.read_bytes()
    path.unlink()
    return content


def _other_runtime_files(order: LaunchOrder) -> Tuple[StagedFile, ...]:
    """Return the files that come with the job beside howdah itself: py-spy, and the Python of `python_archive`."""
    names = {RUNTIME, *(file.name for file in order.files)}
    return tuple(file for file in order.runtime if file.name not in names)


def _log_directories(bootstrap: Bootstrap, order: LaunchOrder, stores_logs: bool) -> Tuple[str, str]:
    """Return two directories: that of all tasks' logs ("" if the container does not see the job's directory), and that
    of this attempt's logs. An executor that stores its logs has both in its container."""
    uri = order.environment.get("HOWDAH_DIRECTORY", "")
    job = Path(uris.path(uri)) if uri.startswith("file:") else None
    if job is None or not os.access(job, os.W_OK):
        if not stores_logs:
            return "", str(bootstrap.directory)
        job = bootstrap.directory
    logs = job / "tasks" / TaskId.parse(order.task).slug / str(order.attempt)
    logs.mkdir(parents=True, exist_ok=True)
    return str(job / "tasks"), str(logs)


if __name__ == "__main__":
    sys.exit(main())
