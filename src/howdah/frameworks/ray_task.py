"""A script that runs one task of a Ray job: Ray's processes, and in the head the job's program beside them.

It imports the standard library alone, and runs in the job's own Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NoReturn

# Ray asks for a token since 2.52; anybody who reaches the ports of an older version can run programs as its user.
FIRST_WITH_TOKENS = (2, 52)
# Ray takes 3 s to start on an idle machine, and ten times as long where many start at once.
_START_LIMIT_S = 300.0
# How long Ray's processes, and a program, may take to end when they are asked: howdah itself waits ten seconds.
_RAY_STOP_S, _PROGRAM_STOP_S = 4.0, 10.0
# How long Ray stays up for processes that a stopped program has left, because they may be saving. Howdah itself kills
# them sooner. A preemption notice alone must not keep Ray up for ever.
_MAX_REST_S = 3600.0
_LOOK_S = 0.2
# The share of a container's memory in which Ray keeps objects; Ray's own choice would be a share of the machine's.
_OBJECTS, _LEAST_OBJECTS = 0.3, 80 << 20
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Ray's sockets lie below it, and Linux takes no longer paths than 107 bytes: the working directory's is longer.
_TEMPORARY, _PREFIX = "/tmp", "howdah-ray-"  # noqa: S108 - made by mkdtemp, for this user alone


class Signals:
    """Notes the signal that ends the task. The program gets the signal, too, because it is in the same process group.

    The handler does nothing else, because Ray's processes are in a session of their own, and must be ended, too.
    """

    def __init__(self) -> None:
        self.ended = 0
        """The signal that ends the task; 0 before one has come."""
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self.ended = number


def fail(text: str) -> NoReturn:
    """End the process with the one line `text`."""
    print(f"howdah: {text}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def check_version() -> None:
    """Refuse a Ray that is missing, or that gives access to everybody."""
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        fail("there is no Ray in the job's environment: its requirements need `ray[default]`")
    numbers = tuple(int(number) for number in version.split(".")[:2] if number.isdigit())
    if numbers < FIRST_WITH_TOKENS and os.environ.get("RAY_AUTH_MODE") == "token":
        fail(
            f"Ray {version} asks nobody for a token: whoever reaches its ports runs programs as you. Use Ray 2.52 or"
            " newer, or accept that with `env: {RAY_AUTH_MODE: disabled}`"
        )


@contextlib.contextmanager
def make_directory() -> Iterator[str]:
    """Make a directory for Ray, which is removed with the task. First remove those of killed tasks of this user."""
    for path in Path(_TEMPORARY).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (path / "lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
    directory = tempfile.mkdtemp(prefix=_PREFIX, dir=_TEMPORARY)
    try:
        with Path(directory, "unlocked").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Other tasks find the file by this name; from then on it is locked.
            Path(lock.name).rename(Path(directory, "lock"))
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def start_ray(directory: str, *more: str) -> subprocess.Popen[bytes]:
    """Start Ray's processes with this task's resources. They end when the returned process is told to end."""
    memory = int(os.environ["HOWDAH_RAY_MIB"]) << 20
    objects = max(int(memory * _OBJECTS), _LEAST_OBJECTS)
    options = {
        "node-ip-address": os.environ["HOWDAH_RAY_IP"],
        "num-cpus": os.environ["HOWDAH_RAY_CPUS"],
        "num-gpus": os.environ["HOWDAH_RAY_GPUS"],
        "object-store-memory": objects,
        "memory": max(memory - objects, 1 << 20),
        "dashboard-agent-listen-port": os.environ["HOWDAH_PORT_AGENT"],
        "temp-dir": f"{directory}/r",  # Ray lets everybody write there; nobody else gets past the directory above it
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    # A task is told to stop when the job needs it no longer, or before it is killed.
    environment = {**os.environ, "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *words, *more]
    # Ray's own messages would hide the program's: they are shown only if Ray fails.
    with Path(directory, "start.log").open("wb") as log:
        # A session of its own: signals that end the program, which may be saving, must not reach Ray.
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)


def stop_ray(ray: subprocess.Popen[bytes]) -> None:
    """End all of Ray's processes of this task; ask them first."""
    ray.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        ray.wait(_RAY_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(ray.pid, signal.SIGKILL)
    ray.wait()


def wait_for_cluster(ray: subprocess.Popen[bytes] | None, directory: str, signals: Signals) -> None:
    """Wait until the head answers, or a signal ends the task."""
    host, _, port = os.environ["RAY_ADDRESS"].rpartition(":")
    until = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < until and not signals.ended:
        if ray is not None and ray.poll() is not None:
            fail(f"Ray did not start:\n{last_words(directory)}")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5.0):
            return
        time.sleep(_LOOK_S)
    if not signals.ended:
        fail(f"Ray's head did not answer at {host}:{port} within {_START_LIMIT_S:.0f} s")


def last_words(directory: str) -> str:
    """Return the last lines of the output of `ray start`."""
    with contextlib.suppress(OSError):
        return "\n".join(Path(directory, "start.log").read_text("utf-8", "replace").strip().splitlines()[-15:])
    return ""


def run_head(directory: str, program: list[str], signals: Signals) -> int:
    """Run the program beside a head; its status is the task's."""
    port = os.environ["RAY_ADDRESS"].rpartition(":")[2]
    more = [f"--port={port}", f"--ray-client-server-port={os.environ['HOWDAH_PORT_CLIENT']}"]
    more += ["--dashboard-host=0.0.0.0", f"--dashboard-port={os.environ['HOWDAH_PORT_DASHBOARD']}"]
    ray = start_ray(directory, "--head", *more)
    try:
        wait_for_cluster(ray, directory, signals)
        return 128 + signals.ended if signals.ended else run_beside(ray, program, directory, signals)
    finally:
        stop_ray(ray)


def run_beside(ray: subprocess.Popen[bytes], program: list[str], directory: str, signals: Signals) -> int:
    """Run the program to its end. End it if Ray ends, because it would wait for ever."""
    reader, writer = os.pipe()  # the other end stays open while one of the program's processes lives
    child = subprocess.Popen(program, pass_fds=(writer,))
    os.close(writer)
    if signals.ended:
        child.send_signal(signals.ended)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = child.wait(_LOOK_S)
            if signals.ended:  # a shell may end before a trainer that it has started
                wait_for_rest(ray, reader)
            return status if status >= 0 else 128 - status
        if ray.poll() is not None:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_PROGRAM_STOP_S)
            child.kill()
            fail(f"Ray's head has ended while the program ran:\n{last_words(directory)}")


def wait_for_rest(ray: subprocess.Popen[bytes], reader: int) -> None:
    """Wait until the processes that the program has left have ended, or until Ray has ended."""
    until = time.monotonic() + _MAX_REST_S
    while ray.poll() is None and time.monotonic() < until:
        if select.select([reader], [], [], _LOOK_S)[0]:
            return


def run_node(directory: str, signals: Signals) -> int:
    """Run as a node until the task is told to stop."""
    wait_for_cluster(None, directory, signals)
    if signals.ended:
        return 128 + signals.ended
    ray = start_ray(directory, f"--address={os.environ['RAY_ADDRESS']}")
    try:
        while not signals.ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                fail(f"Ray's node has ended with status {ray.wait(_LOOK_S)}:\n{last_words(directory)}")
        return 128 + signals.ended
    finally:
        stop_ray(ray)


def main(kind: str, *program: str) -> int:
    """Run the task: `program WORD …`, in the head beside Ray, or `node`."""
    if kind == "program" and "HOWDAH_RAY_HEAD" not in os.environ:
        os.execvp(program[0], program)  # noqa: S606 - the job's own command
    signals = Signals()
    check_version()
    with make_directory() as directory:
        return run_head(directory, list(program), signals) if kind == "program" else run_node(directory, signals)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
