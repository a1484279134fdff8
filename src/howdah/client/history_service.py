"""The history server as a job of its own: one task that runs until it is cancelled, and is found by its name.

The rule: each user has one such job on an engine. The server's key is in the engine's home, where only this user can
read it, and reaches the task as a secret. So anybody who may submit as this user gets the link, from any machine.
"""

from __future__ import annotations

import contextlib
import http.client
import secrets
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import howdah
from howdah.client.engine_registry import engine_info, settings_for
from howdah.client.recorded_events import recorded_events
from howdah.client.submit import PreparedJob, prepare
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobFailed, StagingError
from howdah.spec import JobReport, JobSpec, Resources, Role, StagedJob, State, TaskId, uris
from howdah.spec.fold import fold_recorded
from howdah.spec.staged import IMPORT_PATH, PAGE
from howdah.storage.factory import filesystem
from howdah.storage.progress import Notice
from howdah.wire import auth

NAME, ROLE, KEY = "howdah-history", "history", "HOWDAH_HISTORY_KEY"
MEMORY_MIB, RESTARTS = 1024, 1_000_000
OPENS_S, ANSWER_S = 300.0, 5.0
_START = """
import os, runpy, sys
here = [os.path.abspath(path) for path in sys.argv[1].split(os.pathsep) if os.path.isdir(path)]
sys.path[:0] = here
sys.argv[:] = sys.argv[1:]
runpy.run_module("howdah.history", run_name="__main__", alter_sys=True)
"""


def find_running_service(engine: Engine) -> JobReport | None:
    """Return the history job that runs, or waits for its container; None if there is none."""
    return running_service(engine.describe())


def running_service(reports: Iterable[JobReport]) -> JobReport | None:
    """Return the history job among these that runs, or waits for its container; None if there is none."""
    return next((report for report in reports if report.name == NAME and not report.state.ended), None)


def prepare_service(flags: dict[str, str | None], arguments: Sequence[str], notice: Notice) -> PreparedJob:
    """Plan the job that runs `python -m howdah.history` with these arguments.

    Raises:
        SpecError, StagingError, EngineRejected, EngineUnavailable: the job cannot run; the message says why.
    """
    role = Role(resources=Resources(MEMORY_MIB), tracked=True, on_failure="restart", restarts=RESTARTS, command="true")
    job = JobSpec({ROLE: role}, name=NAME, links={"history": f"http://{{{ROLE}:0}}:{{{ROLE}:0:main}}/"})
    first = prepare(job, Path.cwd(), flags, notice)
    settings, engine = settings_for(flags), first.engine.name
    names = ["staging_dir", *(f"{engine}.{name}" for name in engine_info(engine).settings)]
    given = [f"{name}={settings[name]}" for name in names if settings[name]]  # by which the server finds the home
    options = ["--in-job", *(word for each in given for word in ("--set", each)), *arguments]
    staged = _with_command(first.plan.job, options)
    value = key(first.engine, settings["hadoop_conf_dir"]).hex()
    return PreparedJob(first.engine, first.engine.plan(staged), {KEY: value}, first.profile)


def _with_command(staged: StagedJob, options: Sequence[str]) -> StagedJob:
    import_path = f"{IMPORT_PATH}:{Path(howdah.__file__).parents[1]}"
    command = (staged.python, "-c", _START, import_path, *options)
    role = replace(staged.job.roles[ROLE], command=command, env={"HOWDAH_PAGE": PAGE} if staged.page else {})
    job = replace(staged.job, roles={ROLE: role}, secrets={KEY: f"env:{KEY}"})
    return replace(staged, job=job, files=(*staged.files, *staged.page))


def key(engine: Engine, conf_dir: str) -> bytes:
    """Return the key of this user's history servers on an engine; make one when there is none.

    Raises:
        StagingError, EngineUnavailable: the key can't be read, or not be made.
    """
    uri = uris.join(engine.home, "history.key")
    files = filesystem(uri, conf_dir)
    if not files.exists(uri):
        files.mkdirs(engine.home, 0o700)
        with files.writing(uri, 0o600, replace=False) as sink:
            sink.write(secrets.token_hex(32).encode())
    try:
        return auth.read_key(files.read_bytes(uri).decode())
    except ValueError:
        raise StagingError(f"{uri}: is not a key; remove it, and another is made") from None


def link(engine: Engine, job_id: str, conf_dir: str, notice: Callable[[str], None]) -> str:
    """Return the link of the history job once it serves; `notice` is called with the reasons for which the job waits.

    Raises:
        EngineUnavailable: the job got no container in time.
        JobFailed: the job has ended.
    """
    until, waiting = time.monotonic() + OPENS_S, ""
    while time.monotonic() < until:
        report = next(iter(engine.describe(job_id)), None)
        if report is None or report.state.ended:
            raise JobFailed(f"{job_id} has ended: {report.diagnostics if report else 'the engine does not know it'}")
        url = _url(report)
        url = engine.reach_url(job_id, url) if url else ""
        if url and _answers(url):
            return f"{url}{auth.page_link(key(engine, conf_dir))}"
        if report.diagnostics not in ("", waiting):
            waiting = report.diagnostics
            notice(waiting)
        time.sleep(0.5)
    raise EngineUnavailable(
        f"{job_id} serves nothing after {OPENS_S:.0f} s; `howdah status {job_id}` says what it waits for"
    )


def _answers(url: str) -> bool:
    """Return whether a server answers. An accepted connection proves little: the program may have started and end at
    once, and a tunnel may accept connections."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=ANSWER_S)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _url(report: JobReport) -> str:
    with contextlib.suppress(StagingError):  # there is no log yet
        task = fold_recorded(recorded_events(report)).tasks.get(TaskId(ROLE, 0))
        if task is not None and task.state is State.RUNNING:
            return f"http://{task.host}:{task.ports['main']}"
    return ""
