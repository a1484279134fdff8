"""A script that runs one task of an MPI job: Open MPI's daemon, the daemon's rank, and mpirun in the first task.

No task logs in to another one. mpirun is configured to reach the tasks by a remote shell, which is this script again:
it hands the daemon's command line to the task of that name. A message counts when it is signed with the gang's key.
The file runs by itself, with the standard library, in the job's own Python (3.7 or newer).
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
_SECRETLY = "HOWDAH_MPI_"
# All tasks are started at the same moment; this covers the start of Python and of mpirun on a busy machine.
_MEET_S = 120.0
# The task that failed first is told so; the others wait this long to be stopped before they fail as well.
_HOLD_S = 10.0
# How many callers are served at once, for how long, and how much each may send: anybody may connect.
_MOST_CALLERS, _HEAR_S, _LONGEST = 32, 10.0, 1 << 20
_VERSIONS = ("4", "5")
_WHO_FAILED = re.compile(r"process rank (\d+) with|Process name: \[.*,(\d+)\]|MPI_ABORT was invoked on rank (\d+)")
_WHO_IS_LOST = re.compile(r"Remote daemon: *\[.*,(\d+)\]")  # mpirun itself is the 0th
_NO_NEWS = re.compile(r"setpgid\(.*\) failed in parent")
_SIOCGIFADDR = 0x8915
# Open MPI 4 reads the first, 5 the second; what the user has set stays. Ranks are bound to no core: a node may run
# several tasks, whose daemons know nothing of each other. Collectives in two steps, within a node and between nodes,
# gain nothing with one rank to a node, and those of Open MPI 5 wait for ever where such nodes share a host's name; its
# shared memory, too, is for nobody, is named alike by all of them, and outlives a rank that is killed.
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
# Whether the job runs as root is not Open MPI's to decide.
_ROOT = {f"{who}_ALLOW_RUN_AS_ROOT{more}": "1" for who in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}


class MpiTask:
    """Runs one task; all that happens arrives in `events`, each a kind and a value."""

    def __init__(self, command: list[str]) -> None:
        self.key, self.me = os.environ.pop(KEY), os.environ["HOWDAH_MPI_NAME"]
        self.first = os.path.exists(HOSTS)
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("", int(os.environ["HOWDAH_PORT"])))
        self.listener.listen(128)
        threading.Thread(target=self._listen, daemon=True).start()
        self.environment = self._environment(command)
        self.guilty, self.ordered = -1, False

    def run(self) -> int:
        """Run the task; return the status of its rank, of mpirun, or of the daemon."""
        if self.first:
            self._start_mpirun()
        told, ended = self._wait_until_over()
        status = ended.get("rank") or ended.get("mpirun") or ended.get("daemon") or 0
        if told or not status or (self.first and self.guilty in (0, -1)):
            return status
        if not self.first or self._tell_guilty(status):
            self._next(_HOLD_S, lambda kind: kind == "failed")
        return status

    def _wait_until_over(self) -> tuple[bool, dict[str, int]]:
        """Wait for the end; say whether this task failed first, and return the statuses by process."""
        ended: dict[str, int] = {}
        kind, value = self._next(_MEET_S, lambda kind: kind in ("run", "mpirun"))
        if not kind:
            say(f"mpirun, in the job's first task, has not started {self.me} within {_MEET_S:g} s")
            return True, {"daemon": 1}
        if kind == "run":
            self._start_daemon(value)
        while True:
            if kind in ("rank", "mpirun", "daemon"):
                ended[kind] = value
            if kind == "failed":
                return True, {"rank": ended.get("rank") or value}
            killed = kind == "daemon" and not 0 <= value < 128
            if killed or (kind == "rank" and value and not self.ordered):
                return True, ended
            if "daemon" in ended and ("mpirun" in ended or not self.first):
                return False, ended
            if ended.get("mpirun") and kind == "mpirun":
                return False, ended
            kind, value = self._next(None, lambda _: True)

    def _next(self, limit: float | None, wanted: Any) -> tuple[str, Any]:
        """Return the next event that is wanted, ("", None) after `limit` seconds."""
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            try:
                event = self.events.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return "", None
            if wanted(event[0]):
                return event

    def _listen(self) -> None:
        """Accept callers; of too many the oldest is closed, because anybody may connect and stay silent."""
        callers: collections.deque[socket.socket] = collections.deque()
        while True:
            there, _ = self.listener.accept()
            callers.append(there)
            if len(callers) > _MOST_CALLERS:
                with contextlib.suppress(OSError):
                    callers.popleft().shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._hear, args=(there,), daemon=True).start()

    def _hear(self, there: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), there:
            message = opened(self.key, line_of(there))
            if message["to"] == self.me:
                self.events.put((message["kind"], message["value"]))
                there.sendall(b"ok\n")

    def _environment(self, command: list[str]) -> dict[str, str]:
        """Return the environment of the daemon, and through it of the rank."""
        # Several daemons on a node must not meet in one folder for temporary files.
        scratch = os.path.abspath(".howdah-mpi")
        os.makedirs(scratch, mode=0o700, exist_ok=True)
        reader, writer = os.pipe()
        threading.Thread(target=self._read_rank, args=(reader,), daemon=True).start()
        start = {
            "command": command,
            "directory": os.getcwd(),
            "pid": os.getpid(),
            "tell": writer,
            "environment": {name: os.environ.get(name) for name in ("TMPDIR", "PWD")},
        }
        ours = {"HOWDAH_MPI_START": json.dumps(start), "HOWDAH_MPI_PYTHON": sys.executable, "TMPDIR": scratch}
        ours["HOWDAH_MPI_FILE"] = os.path.abspath(__file__)
        return {**os.environ, **_ROOT, **ours}

    def _read_rank(self, reader: int) -> None:
        with os.fdopen(reader) as lines:
            for line in lines:
                status, ordered = map(int, line.split())
                self.ordered = bool(ordered)
                self.events.put(("rank", status))

    # Starting what Open MPI has.

    def _start_daemon(self, line: str) -> None:
        argv = ["/bin/sh", "-c", at_home(line)]
        self._watch("daemon", subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL))

    def _start_mpirun(self) -> None:
        with open(HOSTS, encoding="utf-8") as file:
            count = str(sum(1 for line in file if line.strip()))
        check_version(shutil.which("mpirun") or "")
        ask = f"python3 -I {os.path.basename(__file__)} ask"
        settings = {**_SETTINGS, "OMPI_MCA_plm_rsh_agent": ask, "PRTE_MCA_plm_ssh_agent": ask}
        environment = {**settings, **os.environ, **_ROOT, KEY: self.key, "TMPDIR": self.environment["TMPDIR"]}
        rank = 'exec "$HOWDAH_MPI_PYTHON" -I "$HOWDAH_MPI_FILE" rank'
        argv = ["mpirun", "-np", count, "--hostfile", HOSTS, "--bind-to", "none", "/bin/sh", "-c", rank]
        mpirun = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._watch("mpirun", mpirun)

    def _watch(self, kind: str, process: subprocess.Popen[bytes]) -> None:
        def wait() -> None:
            for line in process.stderr or ():
                self._mpirun_says(line, line.decode(errors="replace"))
            self.events.put((kind, process.wait()))

        threading.Thread(target=wait, daemon=True).start()

    def _mpirun_says(self, line: bytes, text: str) -> None:
        if _NO_NEWS.search(text):
            return
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
        found, lost = _WHO_FAILED.search(text), _WHO_IS_LOST.search(text)
        if self.guilty < 0 and found:
            self.guilty = int(next(group for group in found.groups() if group))
        elif self.guilty < 0 and lost:
            self.guilty = int(lost[1]) - 1

    def _tell_guilty(self, status: int) -> bool:
        """Tell the task that failed first; False when that task is gone already."""
        try:
            tell(self.key, list(hosts())[self.guilty], "failed", status, 0.0)
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
    for name in [name for name in os.environ if name.startswith(_SECRETLY)]:
        del os.environ[name]
    if not any(name.startswith("OMPI_MCA_btl_tcp_if_") for name in os.environ):
        interface = interface_of(address)
        if interface:
            os.environ["OMPI_MCA_btl_tcp_if_include"] = interface
    os.chdir(start["directory"])
    # The task's own streams are its log; what goes through the daemon ends in the first task's.
    theirs = f"/proc/{start['pid']}/fd"
    modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    streams = [os.open(f"{theirs}/{number}", mode) for number, mode in enumerate(modes)]
    ordered: list[int] = []  # mpirun's order to stop comes as a signal to the whole group; a stranger's doesn't
    signal.signal(signal.SIGTERM, lambda number, _: ordered.append(number))
    program = subprocess.Popen(start["command"], stdin=streams[0], stdout=streams[1], stderr=streams[2])
    status = program.wait()
    with open(f"{theirs}/{start['tell']}", "w") as tell_task:
        tell_task.write(f"{status} {len(ordered)}\n")
    return status


def ask(node: str, words: list[str]) -> None:
    """Have the task `node` run these words, a line for a shell; mpirun calls this in place of ssh."""
    try:
        tell(os.environ[KEY], node, "run", " ".join(words), _MEET_S)
    except OSError as error:
        fail(f"{node} could not be told to start its rank: {error}")


def tell(key: str, node: str, kind: str, value: object, limit: float) -> None:
    """Send a message, as soon as the task listens.

    Raises:
        OSError: the task did not listen within `limit` seconds.
    """
    address = hosts()[node]
    message = sealed(key, {"to": node, "kind": kind, "value": value})
    deadline = time.monotonic() + limit
    while True:
        try:
            with socket.create_connection(address, 10.0) as there:
                there.sendall(message)
                if there.makefile("rb").readline() == b"ok\n":
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
        else:
            raise OSError(f"{node} at {address[0]}:{address[1]} doesn't take its orders from this job")
        time.sleep(0.1)


def hosts() -> dict[str, tuple[str, int]]:
    """Read the tasks' addresses, in the order of ranks, from the comments in the file that mpirun reads."""
    with open(HOSTS, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    return {words[0]: (words[-2], int(words[-1])) for words in lines}


def line_of(there: socket.socket) -> bytes:
    """Read the line that a caller sends.

    Raises:
        OSError, ValueError: the line is not complete in time, or too long.
    """
    line, deadline = b"", time.monotonic() + _HEAR_S
    while not line.endswith(b"\n"):
        there.settimeout(max(0.01, deadline - time.monotonic()))
        part = there.recv(1 << 16)
        line += part
        if not part or len(line) > _LONGEST:
            raise ValueError("no line")
    return line


def sealed(key: str, message: dict[str, Any]) -> bytes:
    text = json.dumps(message)
    return f"{hmac.new(key.encode(), text.encode(), 'sha256').hexdigest()} {text}\n".encode()


def opened(key: str, line: bytes) -> dict[str, Any]:
    """Return the message that `sealed` has signed with this key; ValueError for anything else."""
    seal, _, text = line.decode().strip().partition(" ")
    known = hmac.new(key.encode(), text.encode(), "sha256").hexdigest()
    if not hmac.compare_digest(known.encode(), seal.encode()):
        raise ValueError("not of this job")
    found: dict[str, Any] = json.loads(text)
    return found


def at_home(line: str) -> str:
    """Adapt the daemon's command line to this task: in the foreground, and with this task's path of Open MPI."""
    line = line.replace(" --daemonize", "")
    found = re.search(r"""(?:^|[\s;])(/[^\s;"']*)/bin/(orted|prted)\s""", line)
    here = found and shutil.which(found[2])
    return line.replace(found[1], os.path.dirname(os.path.dirname(here))) if found and here else line


def check_version(mpirun: str) -> None:
    """End this process with a message when there is no mpirun of a known version."""
    if not mpirun:
        fail("there is no mpirun on PATH: the nodes need Open MPI, or the job's requirements name `openmpi`")
    shown = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    first = shown.decode(errors="replace").strip().partition("\n")[0]
    version = re.search(r"Open MPI\D* v?(\d+)\.", first)
    if not version or version[1] not in _VERSIONS:
        fail(f"{mpirun} is {first!r}; this works with Open MPI {' and '.join(_VERSIONS)}")


def interface_of(address: str) -> str:
    """Return the network interface that has this IPv4 address, "" when none has.

    Without it Open MPI would try all interfaces, and wait for those that lead nowhere.
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
    """End with the status of another process, or by its signal."""
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
