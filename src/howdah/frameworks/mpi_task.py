"""A script that runs one task of an MPI job: Open MPI's daemon, the daemon's rank, and mpirun in the first task.

No task logs in to another one. mpirun is configured to use this script as its remote shell: in this role, the script
sends the daemon's command line to the task of that name. A task obeys only messages that are signed with the gang's
key. The script imports only the standard library, and runs in the job's own Python (3.7 or newer).
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import hmac
import json
import os
import queue
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

KEY = "HOWDAH_GANG_KEY"
HOSTS = "howdah-mpi-hosts"
_PRIVATE_PREFIX = "HOWDAH_MPI_"
# All tasks are started at the same moment; this covers the start of Python and of mpirun on a busy machine.
_START_LIMIT_S = 120.0
# The task that failed first gets a message; the others wait this many seconds to be stopped before they fail as well.
_FAILURE_DELAY_S = 10.0
# Any process on the network may connect: how many callers are served at once, for how long, and how many bytes each may
# send.
_MAX_CALLERS, _READ_LIMIT_S, _MAX_BYTES = 32, 10.0, 1 << 20
_VERSIONS = ("4", "5")
_FAILED_RANK = re.compile(r"process rank (\d+) with|Process name: \[.*,(\d+)\]|MPI_ABORT was invoked on rank (\d+)")
_LOST_DAEMON = re.compile(r"Remote daemon: *\[.*,(\d+)\]")  # mpirun itself is the 0th
_USELESS_WARNING = re.compile(r"setpgid\(.*\) failed in parent")
_SIOCGIFADDR = 0x8915
# Open MPI 4 reads the variables OMPI_…, version 5 those of PRTE_…; what the user has set stays. Ranks are bound to no
# core, because a node may run several tasks, whose daemons do not know of each other. Collectives in two steps, within
# a node and between nodes, gain nothing with one rank to a node; those of Open MPI 5 wait for ever if several such
# nodes have the name of one host. Shared memory serves no two ranks here; all nodes of a host give it the same name,
# and it outlives a rank that is killed.
_SETTINGS = {
    "OMPI_MCA_plm": "rsh",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_orte_do_not_resolve": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_coll": "^han",
    "OMPI_MCA_btl": "^sm,vader",
    "PRTE_MCA_plm": "ssh",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_do_not_resolve": "1",
}
# Open MPI refuses to run as root; whether a job runs as root is decided elsewhere.
_ROOT = {f"{who}_ALLOW_RUN_AS_ROOT{more}": "1" for who in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}


class MpiTask:
    """Runs one task. Messages and ends of processes arrive in `events`, each a kind and a value."""

    def __init__(self, command: list[str]) -> None:
        self.key, self.name = os.environ.pop(KEY), os.environ["HOWDAH_MPI_NAME"]
        self.is_first = os.path.exists(HOSTS)
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("", int(os.environ["HOWDAH_PORT"])))
        self.listener.listen(128)
        threading.Thread(target=self._accept_callers, daemon=True).start()
        self.environment = self._daemon_environment(command)
        self.failed_rank, self.was_stopped = -1, False

    def run(self) -> int:
        """Run the task; return the status of its rank, of mpirun, or of the daemon."""
        if self.is_first:
            self._start_mpirun()
        failed_first, ended = self._wait_for_end()
        status = ended.get("rank") or ended.get("mpirun") or ended.get("daemon") or 0
        if failed_first or not status or (self.is_first and self.failed_rank in (0, -1)):
            return status
        if not self.is_first or self._notify_failed_task(status):
            self._next_event(_FAILURE_DELAY_S, "failed")
        return status

    def _wait_for_end(self) -> tuple[bool, dict[str, int]]:
        """Wait for the end; return whether this task failed first, and the status of each process that ended."""
        ended: dict[str, int] = {}
        kind, value = self._next_event(_START_LIMIT_S, "run", "mpirun")
        if not kind:
            say(f"mpirun, in the job's first task, has not started {self.name} within {_START_LIMIT_S:g} s")
            return True, {"daemon": 1}
        if kind == "run":
            argv = ["/bin/sh", "-c", adapt_daemon_command(value)]
            self._watch("daemon", subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL))
        while True:
            if kind in ("rank", "mpirun", "daemon"):
                ended[kind] = value
            if kind == "failed":
                return True, {"rank": ended.get("rank") or value}
            killed = kind == "daemon" and not 0 <= value < 128
            if killed or (kind == "rank" and value and not self.was_stopped):
                return True, ended
            daemon_ended = "daemon" in ended and ("mpirun" in ended or not self.is_first)
            if daemon_ended or (ended.get("mpirun") and kind == "mpirun"):
                return False, ended
            kind, value = self.events.get()

    def _next_event(self, limit_s: float, *kinds: str) -> tuple[str, Any]:
        """Return the next event of these kinds, ("", None) after `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                event = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return "", None
            if event[0] in kinds:
                return event

    def _accept_callers(self) -> None:
        """Serve callers. If there are too many, the oldest is closed, because any process may connect and send
        nothing."""
        callers: collections.deque[socket.socket] = collections.deque()
        while True:
            caller, _ = self.listener.accept()
            callers.append(caller)
            if len(callers) > _MAX_CALLERS:
                with contextlib.suppress(OSError):
                    callers.popleft().shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._receive, args=(caller,), daemon=True).start()

    def _receive(self, caller: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), caller:
            message = verify_message(self.key, read_line(caller))
            if message["to"] == self.name:
                self.events.put((message["kind"], message["value"]))
                caller.sendall(b"ok\n")

    def _daemon_environment(self, command: list[str]) -> dict[str, str]:
        """Return the environment of the daemon, which the rank inherits."""
        # Several daemons on a node must not share a directory for temporary files.
        scratch = os.path.abspath(".howdah-mpi")
        os.makedirs(scratch, mode=0o700, exist_ok=True)
        reader, writer = os.pipe()
        threading.Thread(target=self._read_rank, args=(reader,), daemon=True).start()
        start = {
            "command": command,
            "directory": os.getcwd(),
            "pid": os.getpid(),
            "status_fd": writer,
            "environment": {name: os.environ.get(name) for name in ("TMPDIR", "PWD")},
        }
        own = {"HOWDAH_MPI_START": json.dumps(start), "HOWDAH_MPI_PYTHON": sys.executable, "TMPDIR": scratch}
        own["HOWDAH_MPI_FILE"] = os.path.abspath(__file__)
        return {**os.environ, **_ROOT, **own}

    def _read_rank(self, reader: int) -> None:
        with os.fdopen(reader) as lines:
            for line in lines:
                status, stop_signals = map(int, line.split())
                self.was_stopped = stop_signals > 0
                self.events.put(("rank", status))

    def _start_mpirun(self) -> None:
        check_version(shutil.which("mpirun") or "")
        remote_shell = f"python3 -I {os.path.basename(__file__)} ask"
        settings = {**_SETTINGS, "OMPI_MCA_plm_rsh_agent": remote_shell, "PRTE_MCA_plm_ssh_agent": remote_shell}
        environment = {**settings, **os.environ, **_ROOT, KEY: self.key, "TMPDIR": self.environment["TMPDIR"]}
        rank = 'exec "$HOWDAH_MPI_PYTHON" -I "$HOWDAH_MPI_FILE" rank'
        argv = ["mpirun", "-np", str(len(hosts())), "--hostfile", HOSTS, "--bind-to", "none", "/bin/sh", "-c", rank]
        mpirun = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._watch("mpirun", mpirun)

    def _watch(self, kind: str, process: subprocess.Popen[bytes]) -> None:
        def wait() -> None:
            for line in process.stderr or ():
                self._forward_mpirun_line(line, line.decode(errors="replace"))
            self.events.put((kind, process.wait()))

        threading.Thread(target=wait, daemon=True).start()

    def _forward_mpirun_line(self, line: bytes, text: str) -> None:
        """Print what mpirun printed, and note the first rank that it reports as failed."""
        if _USELESS_WARNING.search(text):
            return
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
        failed, lost = _FAILED_RANK.search(text), _LOST_DAEMON.search(text)
        if self.failed_rank < 0 and failed:
            self.failed_rank = int(next(group for group in failed.groups() if group))
        elif self.failed_rank < 0 and lost:
            self.failed_rank = int(lost[1]) - 1

    def _notify_failed_task(self, status: int) -> bool:
        """Send the task that failed first its status; return False if that task has ended already."""
        try:
            send(self.key, list(hosts())[self.failed_rank], "failed", status, 0.0)
        except (OSError, LookupError):
            return False
        return True


def rank(start: dict[str, Any]) -> int:
    """Run the user's program in the directory and environment of its task; the daemon waits for this process."""
    for name, value in start["environment"].items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    address = os.environ.get("HOWDAH_MPI_ADDRESS", "")
    for name in [name for name in os.environ if name.startswith(_PRIVATE_PREFIX)]:
        del os.environ[name]
    if not any(name.startswith("OMPI_MCA_btl_tcp_if_") for name in os.environ):
        interface = interface_of(address)
        if interface:
            os.environ["OMPI_MCA_btl_tcp_if_include"] = interface
    os.chdir(start["directory"])
    # The program prints to the streams of its task, which are its log; the daemon would send them to the first task.
    task_fds = f"/proc/{start['pid']}/fd"
    modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    streams = [os.open(f"{task_fds}/{number}", mode) for number, mode in enumerate(modes)]
    # mpirun stops a rank by a signal to the whole process group, this process included; no other process does so.
    stop_signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop_signals.append(number))
    status = subprocess.Popen(start["command"], stdin=streams[0], stdout=streams[1], stderr=streams[2]).wait()
    with open(f"{task_fds}/{start['status_fd']}", "w") as report:
        report.write(f"{status} {len(stop_signals)}\n")
    return status


def ask(node: str, words: list[str]) -> None:
    """Make the task `node` run these words, a line for a shell; mpirun calls this in place of ssh."""
    try:
        send(os.environ[KEY], node, "run", " ".join(words), _START_LIMIT_S)
    except OSError as error:
        fail(f"{node} could not be told to start its rank: {error}")


def send(key: str, node: str, kind: str, value: object, limit_s: float) -> None:
    """Send a message to a task as soon as it listens.

    Raises:
        OSError: the task did not listen within `limit_s` seconds, or refused the message.
    """
    address = hosts()[node]
    message = sign_message(key, {"to": node, "kind": kind, "value": value})
    deadline = time.monotonic() + limit_s
    while True:
        try:
            with socket.create_connection(address, 10.0) as connection:
                connection.sendall(message)
                if connection.makefile("rb").readline() == b"ok\n":
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
        else:
            raise OSError(f"{node} at {address[0]}:{address[1]} does not accept orders of this job")
        time.sleep(0.1)


def hosts() -> dict[str, tuple[str, int]]:
    """Read the tasks' addresses, in the order of ranks, from the comments in mpirun's list of hosts."""
    with open(HOSTS, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    return {words[0]: (words[-2], int(words[-1])) for words in lines}


def read_line(caller: socket.socket) -> bytes:
    """Read the line that a caller sends.

    Raises:
        OSError, ValueError: the line is not complete in time, or too long.
    """
    line, deadline = b"", time.monotonic() + _READ_LIMIT_S
    while not line.endswith(b"\n"):
        caller.settimeout(max(0.01, deadline - time.monotonic()))
        part = caller.recv(1 << 16)
        line += part
        if not part or len(line) > _MAX_BYTES:
            raise ValueError("no line")
    return line


def signature(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), "sha256").hexdigest()


def sign_message(key: str, message: dict[str, Any]) -> bytes:
    text = json.dumps(message)
    return f"{signature(key, text)} {text}\n".encode()


def verify_message(key: str, line: bytes) -> dict[str, Any]:
    """Return the message of a line that `sign_message` has made with this key; raise ValueError for anything else."""
    given, _, text = line.decode().strip().partition(" ")
    if not hmac.compare_digest(signature(key, text).encode(), given.encode()):
        raise ValueError("not of this job")
    message: dict[str, Any] = json.loads(text)
    return message


def adapt_daemon_command(line: str) -> str:
    """Adapt the daemon's command line to this task: in the foreground, and with this machine's path of Open MPI."""
    line = line.replace(" --daemonize", "")
    remote = re.search(r"""(?:^|[\s;])(/[^\s;"']*)/bin/(orted|prted)\s""", line)
    local = remote and shutil.which(remote[2])
    return line.replace(remote[1], os.path.dirname(os.path.dirname(local))) if remote and local else line


def check_version(mpirun: str) -> None:
    """End this process with a message if there is no mpirun of a known version."""
    if not mpirun:
        fail("there is no mpirun on PATH: the nodes need Open MPI, or the job's requirements name `openmpi`")
    shown = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    first = shown.decode(errors="replace").strip().partition("\n")[0]
    version = re.search(r"Open MPI\D* v?(\d+)\.", first)
    if not version or version[1] not in _VERSIONS:
        fail(f"{mpirun} is {first!r}; this works with Open MPI {' and '.join(_VERSIONS)}")


def interface_of(address: str) -> str:
    """Return the network interface that has this IPv4 address, "" if none has.

    Otherwise Open MPI would try all interfaces, and wait for those that lead nowhere.
    """
    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                packed = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(packed[20:24]) == address:
                    return name
    return ""


def say(text: str) -> None:
    sys.stderr.write(f"[howdah: {text}]\n")
    sys.stderr.flush()


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(1)


def end(status: int) -> NoReturn:
    """End this process with the status of another one, or by the signal that ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def main(mode: str, *words: str) -> None:
    if mode == "ask":
        ask(words[0], list(words[1:]))
    elif mode == "rank":
        end(rank(json.loads(os.environ["HOWDAH_MPI_START"])))
    else:
        end(MpiTask(list(words)).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
