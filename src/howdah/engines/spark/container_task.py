"""The function of a Spark task that is a container: it starts the bootstrap and waits for its end.

Spark brings this module to its executors by value (`register_pickle_by_value`), because they do not have howdah. So it
imports Python's own library and pyspark alone, and runs on CPython 3.9.
"""

import base64
import contextlib
import hmac
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Keeps the container alive no longer than the Spark task (its standard input ends) or the JVM (its process id is the
# first argument): it ends the bootstrap's process group, first politely, and removes its directory. Spark may kill the
# task's own process at any moment. Its exit status is that of the bootstrap.
_KEEPER = r"""
import os, shutil, signal, subprocess, sys, threading, time
jvm, started = int(sys.argv[1]), sys.argv[2]
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, start_new_session=True)
def start_time(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[19]
    except OSError:
        return ""
def end(*_):
    for number, wait_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        deadline = time.monotonic() + wait_s
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
def leave(status):
    end()
    shutil.rmtree(os.getcwd(), ignore_errors=True)
    os._exit(status)
def watch():
    if jvm:
        while start_time(jvm) == started:
            time.sleep(0.5)
    else:
        while os.read(0, 1):
            pass
    leave(143)
signal.signal(signal.SIGTERM, lambda *_: leave(143))
signal.signal(signal.SIGHUP, signal.SIG_IGN)
threading.Thread(target=watch, daemon=True).start()
status = child.wait()
leave(status if status >= 0 else 128 - status)
"""


def container_task(order: dict[str, Any], ends: Any) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapPartitionsWithIndex`.

    `order` has the `ask` (the beginning of its containers' ids), its `key` in hexadecimal, the bootstrap's `variables`,
    the `archive` in Base64, the interpreter (`python`, "" for that of Spark's Python), whether the Spark task is over
    as soon as the container has `background`, and whether Hadoop believes the user's name (`names_user`). `ends` is an
    accumulator for ids, exit statuses and the bootstrap's last lines.
    """

    def run(partition: int, _rows: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        container = f"{order['ask']}+{context.taskAttemptId()}"
        directory = Path(tempfile.mkdtemp(prefix="howdah-", dir=_yarn_directory(os.environ)))
        variables = write_files(directory, container, order, _facts(context, partition))
        with tempfile.TemporaryFile() as log:
            process = start(directory, variables, order, log)
            status = _wait_launched(process, directory) if order["background"] else process.wait()
            if status is not None:
                ends.add([(container, status, last_lines(log) if status else "")])
        yield container

    return run


def run_beside_driver(container: str, order: dict[str, Any], facts: dict[str, str]) -> "tuple[int, str]":
    """Run a container on this machine; return its exit status, and what the bootstrap has said last."""
    directory = Path(tempfile.mkdtemp(prefix="howdah-"))
    with tempfile.TemporaryFile() as log:
        process = start(directory, write_files(directory, container, order, facts), order, log)
        facts["pid"] = str(process.pid)
        return process.wait(), last_lines(log)


def _wait_launched(process: "subprocess.Popen[bytes]", directory: Path) -> "int | None":
    """Return None when the container has a task of the job, which means that all of the gang have been started, so that
    each had a slot of its own; else the status with which the container has ended."""
    while process.poll() is None and not (directory / "work").exists():
        time.sleep(0.05)
    return process.poll()


def write_files(directory: Path, container: str, order: dict[str, Any], facts: dict[str, str]) -> dict[str, str]:
    """Write the archive and the container's key; return the bootstrap's variables."""
    # howdah.wire.launch_messages.key_of derives it in the same way.
    key = hmac.digest(bytes.fromhex(order["key"]), f"howdah key container {container}".encode(), "sha256")
    for name, content in (("bootstrap.pyz", base64.b64decode(order["archive"])), ("key", key.hex().encode())):
        (directory / name).touch(0o600)
        (directory / name).write_bytes(content)
    # The module tensorflowonspark sees by SPARK_EXECUTOR_POD_IP that the executor is a pod.
    left_out = r"SPARK_(?!EXECUTOR_POD_IP$)|PYTHON|PYSPARK|HOWDAH_"
    kept = {name: value for name, value in os.environ.items() if not re.match(left_out, name)}
    named = {f"HOWDAH_FACT_{name.upper()}": value for name, value in facts.items()}
    # As Spark itself does: executors may run as an account of the cluster's, which may not write where the user may.
    if order.get("names_user") and (user := os.environ.get("HADOOP_USER_NAME") or os.environ.get("SPARK_USER")):
        named["HADOOP_USER_NAME"] = user
    return {
        **kept,
        **named,
        "CUDA_VISIBLE_DEVICES": facts["gpus"],
        # Where a function of the driver's finds the modules that Spark has brought here, and pyspark.
        "SPARK_PYTHON_PATH": os.pathsep.join(filter(None, sys.path)),
        "HOWDAH_CONTAINER": container,
        "HOWDAH_CONTAINER_KEY_FILE": str(directory / "key"),
        "HOWDAH_CONTAINER_DIR": str(directory),
        "HOWDAH_HOST": _own_address(order["variables"]["HOWDAH_MASTER"]),
        **order["variables"],
    }


def start(directory: Path, variables: dict[str, str], order: dict[str, Any], log: Any) -> "subprocess.Popen[bytes]":
    jvm, started = _jvm() if order["background"] else (0, "")
    command = [order["python"] or sys.executable, "-I", str(directory / "bootstrap.pyz")]
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _KEEPER, str(jvm), started, *command],
        cwd=directory,
        env=variables,
        # A write end that nobody writes to: the keeper sees it close when this process ends, however it ends.
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        # Spark's daemon of Python tells its process group to end, and a keeper that does not listen yet would obey.
        start_new_session=True,
    )


def _yarn_directory(environment: "Mapping[str, str]") -> "str | None":
    """Return the directory of YARN's application on the disk with the most room, which YARN removes; None elsewhere."""
    places = environment.get("LOCAL_DIRS", "").split(",") if "CONTAINER_ID" in environment else []
    writable = [place for place in places if os.access(place, os.W_OK | os.X_OK)]
    return max(writable, key=lambda place: shutil.disk_usage(place).free, default=None)


def last_lines(log: Any) -> str:
    """Return the end of what the bootstrap has said."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - 1000))
    return " / ".join(log.read().decode("utf-8", "replace").splitlines()[-3:])


def _facts(context: Any, partition: int) -> dict[str, str]:
    """Return what the allocator wants to know of the Spark task."""
    gpus = context.resources().get("gpu")
    command = _command_line(_jvm()[0])

    def option(name: str) -> str:
        return command[command.index(name) + 1] if name in command[:-1] else ""

    return {
        # On Kubernetes the host name is the pod's address, which a later pod may have, and be blamed for this one.
        "node": option("--podName") or option("--hostname") or socket.gethostname(),
        "executor": option("--executor-id"),
        "application": option("--app-id"),
        "attempt": str(context.taskAttemptId()),
        "partition": str(partition),
        "stage": str(context.stageId()),
        "gpus": ",".join(gpus.addresses) if gpus else "",
    }


def _jvm() -> "tuple[int, str]":
    """Return the process id and the start of the executor's JVM: the first ancestor that is no Python of Spark."""
    pid = os.getppid()
    while pid > 1 and "pyspark.daemon" in _command_line(pid):
        pid = int(_stat(pid)[1])
    return pid, _stat(pid)[19]


def _stat(pid: int) -> "list[str]":
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _command_line(pid: int) -> "list[str]":
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    return []


def _own_address(master: str) -> str:
    """Return the address from which this machine reaches the master, by which others reach it, too."""
    url = urllib.parse.urlsplit(master)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((url.hostname, url.port))
        return str(probe.getsockname()[0])
