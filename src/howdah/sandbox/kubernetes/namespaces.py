"""Makes the namespaces of the control plane and of each node, and starts processes in them.

The first process of a set of namespaces holds them and reaps orphans. When it ends, the kernel kills every other
process in there. When the last process has ended, the mounts and the interfaces disappear: nothing is left to be
cleaned up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal as signals
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.sandbox import process
from howdah.sandbox.process import Process

_START_LIMIT_S = 10.0
_LIMIT_S = 60
_POLL_S = 0.01
# The root of a chroot is no mount point, and runc needs one: the whole tree is then mounted once more. It goes below a
# file system of the new namespaces' own, because a mount on one that is shared would be seen outside.
_HOLD = """set -eu
root=/
if ! mount --make-rprivate / 2>/dev/null; then
    mount --make-rprivate /proc
    mount -t tmpfs tmpfs /proc
    mkdir /proc/root
    mount --rbind / /proc/root
    root=/proc/root
fi
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""
# Without /run, /var/lib and /var/log of its own a node would find, and leave, files of this machine's containerd. The
# sysctls that the kubelet sets are the whole machine's, so that it finds files with the values it wants in their place.
# A kubelet offers what it finds in /proc and /sys; several nodes on one machine offer what the sandbox's shape says. It
# counts all cores, but confines pods to those that have a topology, which must be real ones.
_FURNISH = """set -eu
data=$1 name=$2 vcores=$3 memory_kib=$4 group=$5 cores=$6
hostname "$name"
mount -t tmpfs -o mode=755 tmpfs /run
for directory in lib log; do
    mkdir -p "$data/$directory"
    mount --bind "$data/$directory" "/var/$directory"
done
echo 1 > /proc/sys/net/ipv4/ip_forward
mkdir /run/sysctl
set_aside() {
    [ -e "/proc/sys/$1" ] || return 0
    echo "$2" > "/run/sysctl/$(basename "$1")"
    mount --bind "/run/sysctl/$(basename "$1")" "/proc/sys/$1"
}
set_aside vm/overcommit_memory 1
set_aside vm/panic_on_oom 0
set_aside kernel/panic 10
set_aside kernel/panic_on_oops 1
set_aside kernel/keys/root_maxkeys 1000000
set_aside kernel/keys/root_maxbytes 25000000
sed "s/^MemTotal: .*/MemTotal: $memory_kib kB/" /proc/meminfo > /run/meminfo
mount --bind /run/meminfo /proc/meminfo
for core in $cores; do
    mkdir -p "/run/cpu/cpu$core/topology"
    echo "$core" > "/run/cpu/cpu$core/topology/core_id"
    echo 0 > "/run/cpu/cpu$core/topology/physical_package_id"
done
more=0
while [ "$(ls /run/cpu | wc -l)" -lt "$vcores" ]; do
    mkdir -p "/run/cpu/cpu$((10000 + more))"
    more=$((more + 1))
done
echo 0-9999 > /run/cpu/online
mount --bind /run/cpu /sys/devices/system/cpu
if [ -d /sys/devices/system/node ]; then
    mount -t tmpfs tmpfs /sys/devices/system/node
fi
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$group"
    weight=$((100 * (vcores < 100 ? vcores : 100))) file="/sys/fs/cgroup/$group/cpu.weight"
else
    for controller in /sys/fs/cgroup/*/; do
        mkdir -p "$controller$group"
        for file in cpuset.cpus cpuset.mems; do
            [ ! -e "$controller$file" ] || cat "$controller$file" > "$controller$group/$file"
        done
    done
    weight=$((1024 * vcores)) file="/sys/fs/cgroup/cpu/$group/cpu.shares"
fi
# By default a node, with all its pods, weighs as much as one process: beside 20 others a job took four times as long.
[ ! -w "$file" ] || echo "$weight" > "$file"
"""


def hold(program: Path, log: Path) -> Process:
    """Make namespaces and return their first process, `program`, which must reap orphans."""
    unshare = shutil.which("unshare") or "/usr/bin/unshare"
    kinds = ["--mount", "--propagation", "unchanged", "--net", "--pid", "--uts", "--ipc"]
    command = [unshare, *kinds, "--fork", "--kill-child=KILL", "sh", "-c", _HOLD, "hold", str(program)]
    outer = process.spawn(command, {"PATH": search_path()}, log)
    try:
        inner = _child(outer, log)
        deadline = time.monotonic() + _START_LIMIT_S
        while not _runs(inner.pid, program):
            if not inner.alive() or time.monotonic() > deadline:
                raise EngineUnavailable(f"no namespaces can be made here: {_last_line(log)}")
            time.sleep(_POLL_S)
    except BaseException:
        process.stop([outer], signals.SIGKILL)
        raise
    return inner


def spawn(holder: int, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start `command` in the namespaces of the process `holder`."""
    return _child(process.spawn([*_enter(holder), *command], environment, log), log)


def run(holder: int, command: Sequence[str]) -> str:
    """Run `command` in the namespaces of the process `holder`; return its output.

    Raises:
        EngineUnavailable: the command fails, or does not end within the limit.
    """
    shown = f"`{' '.join(command[:5])}`"
    try:
        done = subprocess.run(
            [*_enter(holder), *command],
            env={"PATH": search_path()},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"{shown} did not end within {_LIMIT_S} s") from None
    if done.returncode:
        raise EngineUnavailable(f"{shown} failed: {done.stderr.strip()[-300:] or f'exit code {done.returncode}'}")
    return done.stdout


def furnish(holder: int, data: Path, name: str, vcores: int, memory_mib: int, group: str) -> None:
    """Turn the namespaces of `holder` into a node with a cgroup, and with directories of its own, which are in
    `data`."""
    data.mkdir(exist_ok=True)
    cores = " ".join(map(str, sorted(os.sched_getaffinity(0))[:vcores]))
    arguments = [str(data), name, str(vcores), str(memory_mib << 10), group, cores]
    try:
        run(holder, ["sh", "-c", _FURNISH, "furnish", *arguments])
    except EngineUnavailable as error:
        raise EngineUnavailable(f"{name} cannot be set up: {str(error).partition('failed: ')[2] or error}") from None


def remove_cgroups(group: str) -> None:
    """Remove the cgroups of nodes whose names start with `group`; none of their processes may be left."""
    deadline = time.monotonic() + _START_LIMIT_S
    while left := [*Path("/sys/fs/cgroup").glob(f"{group}*"), *Path("/sys/fs/cgroup").glob(f"*/{group}*")]:
        for top in left:
            for directory, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # a process that has just been killed may still be in there
                    Path(directory).rmdir()
        if time.monotonic() > deadline:
            raise EngineUnavailable(f"the cgroup {left[0]} cannot be removed: a process is still in it")
        time.sleep(_POLL_S)


def mounts_below(directory: Path) -> list[str]:
    """Return the mount points below a directory that this process sees."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [point for point in points if Path(point).is_relative_to(directory)]


def search_path() -> str:
    """Return the directories of programs, in the order that Debian's root has."""
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _enter(holder: int) -> list[str]:
    nsenter = shutil.which("nsenter") or "/usr/bin/nsenter"
    # A mount namespace has a root of its own, which in a chroot is not this process's.
    return [nsenter, f"--target={holder}", "--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd"]


def _child(parent: Process, log: Path) -> Process:
    """Return the process that `parent` forks; `parent` itself only waits for it."""
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        for pid in _children(parent.pid):
            found = Process.from_pid(pid)
            if found:
                return found
        if not parent.alive():
            break
        time.sleep(_POLL_S)
    raise EngineUnavailable(f"a process that should start in other namespaces has ended: {_last_line(log)}")


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _runs(pid: int, program: Path) -> bool:
    # The link's text is a path in the process's own namespace, but following it leads to the file.
    try:
        return Path(f"/proc/{pid}/exe").samefile(program)
    except OSError:
        return False


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "(no output)"
