"""Runs on a host, to which ssh brings this source: starts containers, reports their ends, and counts the resources in
use.

It reads orders and prints events, one JSON object a line. All state that must outlive it is in files: a container's
directory is `<temporary directory>/howdah-ssh-<uid>/<job>/<container>`, and the container lives while its `lock` is
locked. So all jobs of a user see each other's containers. It needs CPython 3.9 and nothing else.
"""

import base64
import contextlib
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List

KILL_AFTER_S, STEP_S, KEEP_S = 3.0, 0.05, 86400.0
# Writes down which process group to end before it has one to end, and the executor's exit status. The shell waits for
# the executor when both get SIGTERM.
RUN = 'echo $$ > pid || exit; trap : TERM; "$@"; echo $? > status.new; mv status.new status; rm -rf work downloads key'
ROOT = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"howdah-ssh-{os.getuid()}")  # noqa: S108
PRINTING = threading.Lock()


def say(**event: Any) -> None:
    """Print an event for the allocator."""
    with PRINTING:
        print(json.dumps(event), flush=True)


def lives(directory: str) -> bool:
    """Return whether the container of a directory has not ended."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), open(os.path.join(directory, "lock")) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def remove(directory: str) -> None:
    """Remove the directory of a container or job, unless a process lives there, which could not be found any more."""
    if not any(map(lives, (directory, *glob.glob(os.path.join(directory, "*"))))):
        shutil.rmtree(directory, ignore_errors=True)


def read(*parts: str) -> str:
    """Return the text of a file, "" if there is none."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(*parts)) as file:
        return file.read().strip()
    return ""


def inode_of(directory: str) -> int:
    """Return the number by which the file system knows a directory; 0 if it is not there or may not be written."""
    return os.stat(directory).st_ino if os.path.isdir(directory) and os.access(directory, os.W_OK) else 0


def measure() -> Dict[str, Any]:
    """Return the resources of the host."""
    gpus = len(glob.glob("/dev/nvidia[0-9]*"))
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        listed = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, text=True, timeout=10).stdout
        gpus = sum(line.startswith("GPU ") for line in listed.splitlines())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {"gpus": gpus, "vcores": len(os.sched_getaffinity(0)), "memory_mib": memory}


def grants() -> List[Dict[str, Any]]:
    """Return the resources of the living containers."""
    found = glob.glob(os.path.join(ROOT, "*", "*", "grant"))
    texts = [read(path) for path in found if lives(os.path.dirname(path))]
    return [json.loads(text) for text in texts if text]  # another job's program may have removed it just now


class JobOnHost:
    """The containers of one job on this host."""

    def __init__(self, greeting: Dict[str, Any]) -> None:
        self.name, self.room = greeting["job"], {**measure(), **greeting["given"]}
        self.archive = base64.b64decode(greeting.get("archive", ""))
        self.directory = os.path.join(ROOT, self.name)

    def free(self) -> Dict[str, Any]:
        """Return the free resources, with GPUs by their numbers."""
        taken = grants()
        numbers = set(range(self.room["gpus"])).difference(*(grant["gpus"] for grant in taken))
        rest = {key: self.room[key] - sum(grant[key] for grant in taken) for key in ("vcores", "memory_mib")}
        return {**rest, "gpus": sorted(numbers)}

    def start(self, order: Dict[str, Any]) -> None:
        """Start a container if there is room beside the containers of all jobs of the user."""
        name, directory = order["start"], os.path.join(self.directory, order["start"])
        if order["sees"] and not os.path.isdir(order["sees"]):
            return say(refused=name, text=f"it does not see {order['sees']}: the home must be shared by all hosts")
        with open(os.path.join(ROOT, "gate"), "w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            free = self.free()
            if len(free["gpus"]) < order["gpus"] or any(order[key] > free[key] for key in ("vcores", "memory_mib")):
                return say(busy=name)
            gpus = free["gpus"][: order["gpus"]]
            self.run(order, directory, gpus)
        say(started=name, gpus=gpus)
        self.watch(name)

    def run(self, order: Dict[str, Any], directory: str, gpus: List[int]) -> None:
        """Record a container, and run the bootstrap in it."""
        os.makedirs(directory, 0o700)
        lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT)
        around = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.flock(around, fcntl.LOCK_SH)  # systemd-tmpfiles removes nothing old of a directory that is locked
            grant = {key: order[key] for key in ("vcores", "memory_mib")}
            text = json.dumps({**grant, "gpus": gpus, "boot": read("/proc/sys/kernel/random/boot_id")})
            files = {"grant.new": text.encode(), "key": order["key"].encode(), "bootstrap.pyz": self.archive}
            for file, content in files.items():
                path = os.path.join(directory, file)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as opened:
                    opened.write(content)
            kept = {key: value for key, value in os.environ.items() if not key.startswith("SSH_")}
            given = {"HOWDAH_CONTAINER_KEY_FILE": "key", "HOWDAH_CACHE_DIR": os.path.join(self.directory, "cache")}
            devices = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
            os.rename(os.path.join(directory, "grant.new"), os.path.join(directory, "grant"))
            with open(os.path.join(directory, "bootstrap.log"), "wb") as log:
                subprocess.Popen(
                    ["/bin/sh", "-c", RUN, "sh", sys.executable, "-I", "bootstrap.pyz"],
                    cwd=directory, env={**kept, **given, **devices, **order["variables"]}, pass_fds=(lock, around),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
        finally:
            os.close(lock)
            os.close(around)

    def watch(self, name: str) -> None:
        """Report a container's end, now or later."""

        def wait() -> None:
            directory = os.path.join(self.directory, name)
            with open(os.path.join(directory, "lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_SH)
            status, booted = read(directory, "status"), read("/proc/sys/kernel/random/boot_id")
            say(ended=name, status=status, lost=booted not in read(directory, "grant"))

        threading.Thread(target=wait, daemon=True).start()

    def stop(self, name: str, is_unknown: bool = False) -> None:
        """End a container: all processes of its group. Remove a container that the master does not know."""

        def act() -> None:
            directory = os.path.join(self.directory, name)
            for number in (signal.SIGTERM, signal.SIGKILL):
                deadline = time.monotonic() + KILL_AFTER_S
                with contextlib.suppress(ProcessLookupError, ValueError, FileNotFoundError):
                    if lives(directory):
                        os.killpg(int(read(directory, "pid")), number)
                while lives(directory) and time.monotonic() < deadline:
                    time.sleep(STEP_S)
            if is_unknown:
                remove(directory)

        threading.Thread(target=act).start()


def main() -> None:
    """Answer the greeting, then execute orders until the connection ends."""
    greeting = json.loads(sys.stdin.buffer.readline())
    with contextlib.suppress(FileExistsError):
        os.mkdir(ROOT, 0o700)
    if os.path.islink(ROOT) or os.stat(ROOT).st_uid != os.getuid():
        sys.exit(f"{ROOT} belongs to somebody else")
    job = JobOnHost(greeting)
    inodes = {directory: inode_of(directory) for directory in greeting.get("directories", ())}
    present = [os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(job.directory, "*", "lock"))]
    address = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    say(room=job.room, free=job.free(), inodes=inodes, address=address, present=present)
    if not job.name:
        return
    for old in glob.glob(os.path.join(ROOT, "*", "")):  # of jobs whose last master was killed
        if time.time() - os.stat(old).st_mtime > KEEP_S:
            remove(old)
    for name in present:
        job.watch(name) if name in greeting["known"] else job.stop(name, is_unknown=True)
    for line in sys.stdin.buffer:
        order = json.loads(line)
        if "start" in order:
            try:
                job.start(order)
            except OSError as error:  # a full disk, for example: running containers go on
                remove(os.path.join(job.directory, order["start"]))
                say(refused=order["start"], text=f"{error.filename or job.directory}: {error.strerror}")
        elif "stop" in order:
            job.stop(order["stop"])
        else:
            remove(os.path.join(ROOT, order["remove"]))


main()
