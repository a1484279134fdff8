"""Runs a program in a container image by podman, docker or apptainer, while the executor stays outside (docs/adr/0018).

In the container the shell of the image is process 1. It reads the program's variables, which are neither in the
argument vector nor in what `podman inspect` shows, runs the program in its own process group, and passes its exit
status on. Signals go to that group. KILL goes to process 1, whose end ends everything in the container's namespace.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shlex
import signal
import subprocess
import time
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from howdah.executor.event_loop import READ, EventLoop
from howdah.executor.process import process_tree
from howdah.executor.process.detached_command import run_detached
from howdah.executor.process.image_mounts import NodeMounts
from howdah.executor.process.left_processes import left_in_background
from howdah.executor.process.oom_detection import OomDetector
from howdah.executor.process.pipelines import watch_pipelines, watch_words
from howdah.localfiles.container_tools import LABEL
from howdah.spec.message import message
from howdah.wire.messages import ImageOrder

IMAGE_PATH = "<PATH of the image>"
"""Stands for the PATH of the image in a variable's value; only the container knows that PATH."""
MARK = "HOWDAH_CONTAINER"
_SHELL = "/bin/sh"
_LINE = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$1"; fi; exec /bin/sh -c "$2"'
# $1 is the file of variables, $2 the file whose existence shows that the container runs, $3 the message about processes
# that the program leaves, $4 the tenths of a second for which these may live, and the rest is the program. The program
# waits for a moment until the executor watches the container: otherwise a short program would end before that. The end
# of process 1 kills all others, so it waits for them; unless the executor does so already, it tells them to end.
_AWAIT_WATCHER = '(n=0; until [ -e "$2-watched" ] || [ $n = 100 ]; do n=$((n+1)); sleep 0.02 || sleep 1; done) 2>&-; '
_AWAIT_OTHERS = (
    "{ while set -- /proc/[0-9]*; [ $# -gt 1 ] && [ $n -lt $l ]; do "
    'if [ $n = 2 ] && [ ! -e "$s-stopping" ]; then '
    'for p; do [ $p = /proc/1 ] || { read -r m <$p/comm && t="$t $m"; }; done; echo "[howdah: $t]" >&4; kill -TERM -1; '
    "fi; n=$((n+1)); sleep 0.1 || sleep 1; done; } 4>&2 2>&-; "
)
_AS_PROCESS_1 = (
    '. "$1" || exit 125; : >"$2" || exit 125; ' + _AWAIT_WATCHER + "s=$2 t=$3 l=$4 n=0; shift 4; "
    '"$@" 3<&-; c=$?; exec 3<&-; ' + _AWAIT_OTHERS + "exit $c"
)
_AS_PROGRAM = '. "$1" || exit 125; : >"$2" || exit 125; shift 4; exec "$@" 3<&-'
_NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLES_FD = 3
_SEARCH_S, _MAX_SEARCH_S, _SEARCH_FACTOR = 0.03, 1.0, 1.2
_MAX_EVENTS_S = 3.0
_MAX_TOOL_END_S = 60.0  # The tool copies the rest of the output and removes the container meanwhile.
# $0 is the tool. A daemon may just be making the container; and podman fails at its first try, when it finds that its
# own process of the container is gone.
_REMOVE = 'for pause in 2 2 0; do timeout 30 "$0" rm "$@"; sleep $pause; done'
_PID_MAX = "/proc/sys/kernel/pid_max"


class ImageProgram:
    """One run of a program in the image that `order` names, by `tool`, the path of podman, docker or apptainer.

    `directory` is the working directory; `private` a directory that only this user may read. `name` and `container`
    (the engine's name of the task's container) are for the tool's own list of containers. `as_root` says that this
    user is root in the tool's containers.
    """

    def __init__(
        self,
        order: ImageOrder,
        tool: str,
        image: Sequence[str],
        directory: str,
        private: str,
        name: str,
        container: str,
        as_root: bool = False,
    ) -> None:
        self.order, self.tool, self.image = order, tool, image
        self.kind = os.path.basename(tool)
        self.directory, self.private = directory, private
        self.name, self.container, self.as_root = name, container, as_root
        self.pid = 0
        """Process 1 of the container, as this machine numbers it; 0 before it is known, and with apptainer."""
        self.argv: List[str] = []
        """The argument vector that starts the tool."""
        self.files: List[int] = []
        """The open file that the tool needs as its descriptor 3, if any; the caller that starts the tool closes it."""
        self.environment = own_variables({**os.environ, **({MARK: container} if container else {})})
        """The environment of the tool."""
        self.interrupted = False
        """Whether the tool itself got a signal, so that it may have left the container."""
        self.oom: Optional[OomDetector] = None
        self._memory_mib, self._since = 0, f"{time.time():.3f}"
        self._pidfd = -1
        self._ended = self._removed = False
        self._search_s = _SEARCH_S
        self._kill_tool: Optional[Callable[[], None]] = None
        self._loop: Optional[EventLoop] = None
        self._pid_file = os.path.join(private, "pid")
        self._started_file = os.path.join(private, "started")
        self._watched_file, self._stopping_file = self._started_file + "-watched", self._started_file + "-stopping"
        for file in (self._pid_file, self._started_file, self._watched_file, self._stopping_file):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)

    @property
    def started(self) -> bool:
        """Return whether the container has begun to run, so that exit statuses are the program's own."""
        return os.path.exists(self._started_file)

    def prepare(
        self,
        command: Union[str, Tuple[str, ...]],
        variables: Mapping[str, str],
        more: Sequence[str],
        memory_mib: int,
        gpus: Sequence[str],
        grace_s: float,
    ) -> None:
        """Set `argv` and `files` for a run of `command`.

        `more` are further paths of this node that the program uses. The container gets the memory limit `memory_mib`
        and the GPUs `gpus` of the node. Processes that the program leaves have `grace_s` seconds between TERM and KILL.
        """
        self._memory_mib = memory_mib
        text = "".join(exports(variables))
        source = f"/dev/fd/{_VARIABLES_FD}"
        if self.kind == "docker":  # it passes no descriptors on: the shell removes the file when it has read it
            source = os.path.join(self.private, "variables")
            with open(os.open(source, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
                stream.write(text + f"rm -f {shlex.quote(source)}\n")
        else:
            file = os.memfd_create("variables")
            os.write(file, text.encode("utf-8", "surrogateescape"))
            os.lseek(file, 0, os.SEEK_SET)
            self.files = [file]
        script = _AS_PROGRAM if self.kind == "apptainer" else _AS_PROCESS_1
        # A line goes to the bash of the image, or to its sh.
        words = watch_words(command) if not isinstance(command, str) else ()
        if isinstance(command, str):
            words = (_SHELL, "-c", _LINE, "sh", watch_pipelines(command), command)
        left = [left_in_background("", grace_s).strip(), str(int(grace_s * 10) + 2)]
        inner = ["-c", script, "sh", source, self._started_file, *left, *words]
        options = self._options(memory_mib, gpus, list(self._mounts(more)))
        if self.kind == "apptainer":
            self.argv = [self.tool, "exec", *options, *self.image, _SHELL, *inner]
        else:
            self.argv = [self.tool, "run", *options, "--entrypoint", _SHELL, *self.image, *inner]

    def command_words(self) -> Tuple[List[str], str]:
        """Return the words that come before a further command in the image, and the option that asks for a terminal.

        With podman and docker the command runs in the program's own container, with apptainer in another one of the
        same kind.
        """
        if self.kind == "apptainer":
            return self.argv[: self.argv.index(_SHELL)], ""
        return [self.tool, "exec", "-i", "--workdir", self.directory, self.name], "-t"

    def _options(self, memory_mib: int, gpus: Sequence[str], mounts: Sequence[str]) -> Iterator[str]:
        if self.kind == "apptainer":
            yield from ("--pwd", self.directory, "--cleanenv", "--env", f"{MARK}={self.container}")
            yield from mounts
            if gpus:
                yield "--nv"
            return
        yield from ("--rm", "-i", "--name", self.name, "--label", f"{LABEL}={self.container}", "--sig-proxy=false")
        yield from ("--network", "host", "--ipc", "host", "--pull", "never", "--log-driver", "none", "--no-healthcheck")
        yield from ("--security-opt", "label=disable", "--workdir", self.directory)
        yield from self._user()
        yield from ("--env", f"{MARK}={self.container}")
        yield from ("--ulimit", _ulimit("nofile", resource.RLIMIT_NOFILE))
        yield from ("--ulimit", _ulimit("nproc", resource.RLIMIT_NPROC, int(process_tree.read(_PID_MAX) or b"32768")))
        if memory_mib:
            yield from ("--memory", f"{memory_mib}m", "--memory-swap", f"{memory_mib}m")
        yield from mounts
        if self.kind == "podman":
            yield from ("--preserve-fds", "1", "--pidfile", self._pid_file, "--http-proxy=false")
            if os.getuid():
                yield from ("--userns", "keep-id")
            for gpu in gpus:
                yield from ("--device", f"nvidia.com/gpu={gpu}")
        elif gpus:
            yield from ("--gpus", '"device={}"'.format(",".join(gpus)))

    def _user(self) -> Iterator[str]:
        """Yield the user's own ids. Rootless podman can show no other group than the first."""
        if self.as_root:
            yield from ("--user", "0:0")
            return
        yield from ("--user", f"{os.getuid()}:{os.getgid()}")
        if self.kind == "docker" or not os.getuid():
            for group in sorted({*os.getgroups()} - {os.getgid()}):
                yield from ("--group-add", str(group))

    def _mounts(self, more: Sequence[str]) -> Iterator[str]:
        """Yield the options for the paths of this node that the program sees, and for the mounts of the job."""
        own = [self._from_directory(mount) for mount in dict.fromkeys(self.order.mounts)]
        taken = {os.path.normpath(target) for mount in own for target in mount.split(":")[1:2]}
        found = NodeMounts([self.directory, self.private, *more], [self.directory, self.private])
        for option in found.options(taken):
            yield from ("--mount", option)
        for mount in own:
            yield from ("--bind" if self.kind == "apptainer" else "--volume", mount)

    def _from_directory(self, mount: str) -> str:
        """Return a mount of the job. A source that is not an absolute path is relative to the working directory."""
        source, colon, rest = mount.partition(":")
        return f"{os.path.realpath(os.path.join(self.directory, source))}{colon}{rest}"

    def why_not_started(self, lines: Sequence[str], code: Optional[int]) -> str:
        """Explain by the last lines of the tool why no container was started."""
        reason = next((line.strip() for line in reversed(lines) if line.strip()), "")
        template = "image {image} could not be started: {reason}"
        return message(template, image=repr(self.order.image), reason=reason or f"status {code}")

    def watch(self, loop: EventLoop, kill_tool: Callable[[], None]) -> None:
        """Look for the container's process 1 until it is found, then watch for its end and for kills by lack of memory.

        `kill_tool` is called if the tool does not end soon after process 1.
        """
        self._loop, self._kill_tool = loop, kill_tool
        self._search()

    def _search(self) -> None:
        assert self._loop is not None
        if self.started or self.kind == "podman":  # to find it by all processes takes long
            self._look_once()
        if self.started:
            self._search_s = min(self._search_s * _SEARCH_FACTOR, _MAX_SEARCH_S)
        if not (self._ended or self.pid or self.kind == "apptainer"):
            self._loop.call_later(self._search_s, self._search)

    def _look_once(self) -> None:
        """Look once for process 1, if it is not known yet. Once it is found, watch it."""
        if self._loop is None or self._ended or self.pid or self.kind == "apptainer":
            return
        self.pid = self._find()
        if self.pid:
            self.oom = OomDetector(self.pid)
            with contextlib.suppress(OSError, AttributeError):  # Linux before 5.3, Python before 3.9
                self._pidfd = os.pidfd_open(self.pid)
                self._loop.add_fd(self._pidfd, READ, lambda _: self._process_1_ended())
            with contextlib.suppress(OSError), open(self._watched_file, "wb"):
                pass

    def _find(self) -> int:
        if self.kind == "podman":
            text = process_tree.read(self._pid_file).strip()
            return int(text) if text.isdigit() else 0
        mark = f"{MARK}={self.container}".encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            inner = process_tree.read(f"/proc/{entry}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
            if (
                len(inner) > 1
                and inner[-1] == b"1"
                and mark in process_tree.read(f"/proc/{entry}/environ").split(b"\0")
            ):
                return int(entry)
        return 0

    def _process_1_ended(self) -> None:
        """Read the counters of the container's control group, which the tool removes in a moment."""
        if self.oom is not None:
            self.oom.keep()
        self.close()
        if self._loop is not None and self._kill_tool is not None:
            self._loop.call_later(_MAX_TOOL_END_S, self._kill_tool)

    def processes(self) -> Optional[List[int]]:
        """List the program's processes; None if they are descendants of the executor, as those of a program without an
        image are."""
        if self.kind == "apptainer":
            return None
        self._look_once()
        return process_tree.tree(self.pid)[1:] if self.pid else []

    def send_signal(self, number: int) -> bool:
        """Send a signal to the program; return False if the caller must send it to the tool instead.

        That is so while the container has no process yet. When the program has ended, the tool may remove the container
        undisturbed, until KILL says that there is no more time.
        """
        self._look_once()
        if not self.pid:
            return False
        if self._ended or not os.path.exists(f"/proc/{self.pid}"):
            return number != signal.SIGKILL
        if number == signal.SIGKILL:
            process_tree.kill(self.pid, number)
        else:
            process_tree.kill_group(self.pid, number)
        return True

    def note_stop(self) -> None:
        """Let process 1 know that the executor stops the program."""
        with contextlib.suppress(OSError), open(self._stopping_file, "wb"):
            pass

    def remove_later(self) -> None:
        """Remove the container by a process that outlives this one, because the tool was killed before it had removed
        it."""
        if self.kind == "apptainer" or self._removed:
            return
        self._removed = True
        words = ("-f", "-t", "0") if self.kind == "podman" else ("-f",)
        argv = ("/bin/sh", "-c", _REMOVE, self.tool, *words, self.name)
        with contextlib.suppress(OSError):  # no room for a process: the container's label shows whose it is
            run_detached(argv, own_variables(os.environ, marked=False))

    def why_memory(self) -> Optional[str]:
        """Return the sentence of `OomDetector.verdict` about a program that was killed, by what Docker's own daemon has
        recorded: the container's control group may be gone before this process reads it."""
        if self.kind != "docker" or not self._memory_mib:
            return None
        now = f"{time.time():.3f}"
        only = ("--filter", "event=oom", "--filter", "container=" + self.name)
        argv = (self.tool, "events", "--since", self._since, "--until", now, *only, "--format", "{{.ID}}")
        try:
            found = subprocess.run(
                argv, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_MAX_EVENTS_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        template = "killed by the kernel: used {used} MiB of {limit} MiB"
        limit = self._memory_mib
        return message(template, used=limit, limit=limit) if found.stdout.strip() else None

    def close(self) -> None:
        """Watch no more, because the container has ended."""
        self._ended = True
        if self._pidfd >= 0 and self._loop is not None:
            self._loop.remove_fd(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1


def own_variables(environment: Mapping[str, str], marked: bool = True) -> Dict[str, str]:
    """Return the executor's variables that the tool itself needs: none of howdah's but the container's name.

    If `marked` is false the name is left out, too, and the process is not killed with the rest of the container.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("HOWDAH_")}
    return {**kept, MARK: environment[MARK]} if marked and MARK in environment else kept


def variables_for_image(container: Mapping[str, str]) -> Dict[str, str]:
    """Return the executor's variables that make sense in an image: none that describe this node."""
    kept = {name: value for name, value in container.items() if name.startswith("HOWDAH_") or name in _GPU_VARIABLES}
    return {**kept, "PATH": IMAGE_PATH}


_GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LANG", "TZ")


def _ulimit(name: str, number: int, max_value: int = 1 << 20) -> str:
    """Return the option that sets the executor's own limit, because the tool's default may be more than this user may
    set. podman lowers its own number of processes to the kernel's `pid_max`, and may not set more then."""
    limits = resource.getrlimit(number)
    soft, hard = (max_value if limit == resource.RLIM_INFINITY else min(limit, max_value) for limit in limits)
    return f"{name}={soft}:{hard}"


def exports(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of shell that set these variables in the image."""
    for name, value in variables.items():
        if _NAME.fullmatch(name):  # a shell has no others
            before, own, after = value.partition(IMAGE_PATH)
            quoted = shlex.quote(before) + '"$PATH"' + shlex.quote(after) if own else shlex.quote(value)
            yield f"export {name}={quoted}\n"
