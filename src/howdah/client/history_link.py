"""Makes a link to the page of an ended job at a history server: a running server, or else one that is started for
it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from howdah.api import history_servers
from howdah.client import history_service
from howdah.client.api_client import ApiClient
from howdah.client.engine_registry import settings_for
from howdah.config.settings import HISTORY_URL
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, NotFound
from howdah.localfiles.own_directories import state_directory
from howdah.storage.progress import no_notice

PORT = 18488
STARTED_PORT = 18489
"""The port of a server that is started here. `howdah history` uses another port, so addresses stay valid."""
IDLE = "30m"
READ_S, NOTICE_S = 120.0, 3.0
LOG = "server.log"


def find_or_start(
    engine: Engine, job_id: str, profile: str, on_start: Callable[[], None], on_wait: Callable[[float], None]
) -> str:
    """Return the link of the job's page at a history server that has the job. The configured server is asked first,
    then the server that runs as a job of the engine, then those of this machine. If none has the job, a server is
    started here; it ends after half an hour without a request.

    `on_start` is called when a server was started. `on_wait` is called with the limit in seconds when reading the jobs'
    logs takes a while.

    Raises:
        EngineUnavailable: the server that was started did not serve, or does not find the job.
    """
    directory = Path(state_directory(os.environ), "history")
    for link in (*_known_addresses(engine, profile), *history_servers.links(directory)):
        if _serves_job(link, job_id):
            return _page(link, job_id)
    server = _start(directory, profile)
    on_start()
    return _page(_wait(server, directory, job_id, on_wait), job_id)


def _known_addresses(engine: Engine, profile: str) -> Iterator[str]:
    settings = settings_for({"engine": engine.name, "profile": profile})
    if settings[HISTORY_URL]:
        yield settings[HISTORY_URL]
    if not engine.one_machine:
        with contextlib.suppress(HowdahError):
            job = history_service.find_running_service(engine)
            if job is not None:
                yield history_service.link(engine, job.id, settings["hadoop_conf_dir"], no_notice)


def _serves_job(link: str, job_id: str) -> bool:
    with contextlib.suppress(HowdahError):
        ApiClient(link).get(f"jobs/{job_id}")
        return True
    return False


def _page(link: str, job_id: str) -> str:
    """Make the link of a page; the token comes after its path, as in the links that the page itself copies."""
    remote = ApiClient(link)
    return f"{remote.base}#/jobs/{quote(job_id)}?token={quote(remote.token)}"


def _start(directory: Path, profile: str) -> subprocess.Popen[bytes]:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-c", "from howdah.cli import main; main()", "history", "--port", str(_port())]
    command += ["--idle", IDLE, *(["--profile", profile] if profile else [])]
    with (directory / LOG).open("wb") as log:
        return subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
        )


def _port() -> int:
    """Return the usual port, or 0 (any free one) if another program has it."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", STARTED_PORT))
        except OSError:
            return 0
        return STARTED_PORT


def _wait(server: subprocess.Popen[bytes], directory: Path, job_id: str, on_wait: Callable[[float], None]) -> str:
    """Return the link of the server that was started, as soon as it has read the job's log."""
    began, announced = time.monotonic(), False
    while time.monotonic() - began < READ_S:
        for link in history_servers.links(directory):
            if _serves_job(link, job_id):
                return link
        if server.poll() is not None:
            lines = (directory / LOG).read_text(errors="replace").strip().splitlines()
            raise EngineUnavailable(f"the history server did not start: {lines[-1] if lines else 'no output'}")
        if not announced and time.monotonic() - began > NOTICE_S:
            announced = True
            on_wait(READ_S)
        time.sleep(0.1)
    raise NotFound(f"the history server has not found {job_id} within {READ_S:.0f} s: {directory / LOG} says more")
