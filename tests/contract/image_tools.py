"""Makes a container image on the spot, from programs of this machine, for tests of the tools that run images."""

from __future__ import annotations

import contextlib
import functools
import getpass
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_CONFIGURATION = """\
[containers]
log_driver = "k8s-file"
[engine]
runtime = "{runtime}"
events_logger = "file"
cgroup_manager = "cgroupfs"
"""
LIMIT_S = 60.0
_DOCKER = Path(sys.prefix) / "docker" / "usr"
NO_PODMAN = "no podman with runc on this machine, or it is a chroot"
RELEASE = "ID=made-for-tests\n"
"""The os-release of the image."""
_PROGRAMS = ("sh", "bash", "sleep", "cat", "head", "sed", "env", "kill", "ls", "id", "touch", "rm", "mkdir")


@dataclass(frozen=True)
class Tool:
    """A tool that runs images, and the variables that separate its containers and images from others."""

    name: str
    environment: dict[str, str]

    def __call__(self, *words: str) -> str:
        """Run the tool; return its output."""
        environment = {**os.environ, **self.environment}
        command = [str(shutil.which(self.name, path=environment["PATH"])), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        return done.stdout

    def containers(self) -> list[str]:
        """Return the names of all containers that the tool knows."""
        return self("ps", "-a", "--format", "{{.Names}}").split()


def needs_podman() -> pytest.MarkDecorator:
    """Return the mark of tests that run images by podman."""
    return pytest.mark.skipif(not has_podman(), reason=NO_PODMAN)


def has_podman() -> bool:
    """Return whether podman runs images here: for root, or rootless for a user with a range of subordinate ids."""
    if shutil.which("podman") is None or shutil.which("runc") is None or is_chroot():
        return False
    ranges = Path("/etc/subuid").read_text() if Path("/etc/subuid").exists() else ""
    return os.geteuid() == 0 or f"{getpass.getuser()}:" in ranges


def is_chroot() -> bool:
    """Return whether / is no mount point: runc then starts nothing."""
    return all(line.split()[4] != "/" for line in Path("/proc/self/mountinfo").read_text().splitlines())


@contextlib.contextmanager
def dockerd(directory: Path) -> Iterator[Tool]:
    """Start a separate Docker for the test, which leaves the machine's network alone; its mounts are in a separate
    namespace. Needs root, and a dockerd, which tools/prepare fetches without its service."""
    path = f"{os.environ['PATH']}:/usr/sbin:{_DOCKER}/bin:{_DOCKER}/sbin"
    if os.geteuid() != 0 or not all(shutil.which(name, path=path) for name in ("dockerd", "docker", "containerd")):
        pytest.skip("no dockerd with containerd for root on this machine")
    if is_chroot():
        pytest.skip("in a chroot runc starts nothing")
    # The docker that belongs to dockerd comes first: of another version it may not speak with it.
    daemon = str(shutil.which("dockerd", path=path))
    if daemon.startswith(str(_DOCKER)):
        path = f"{_DOCKER}/bin:{path}"
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="howdah-docker-") as run:
        (Path(run) / "daemon.json").write_text("{}")
        options = {
            "host": f"unix://{run}/socket",
            "config-file": f"{run}/daemon.json",
            "data-root": directory / "data",
            "exec-root": f"{run}/exec",
            "pidfile": f"{run}/pid",
            "bridge": "none",
            "storage-driver": "vfs",
            **dict.fromkeys(("iptables", "ip6tables", "ip-forward", "ip-masq", "userland-proxy"), "false"),
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        with (directory / "dockerd.log").open("wb") as log:
            process = subprocess.Popen(
                ["unshare", "--mount", daemon, *words], env={**os.environ, "PATH": path}, stdout=log, stderr=log
            )
        found = Tool("docker", {"DOCKER_HOST": f"unix://{run}/socket", "PATH": path})
        try:
            _wait_for(found, process, directory / "dockerd.log")
            yield found
        finally:
            process.terminate()  # it ends its containerd, too
            process.wait(LIMIT_S)


def _wait_for(tool: Tool, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            tool("version")
            return
        except subprocess.CalledProcessError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"dockerd does not answer: {log.read_text()}"
            time.sleep(0.1)


@contextlib.contextmanager
def podman(directory: Path, runtime: str = "runc") -> Iterator[Tool]:
    """Give a podman that keeps its containers and images below `directory`, which belongs to one test run."""
    configuration, storage = directory / "containers.conf", directory / "storage.conf"
    configuration.write_text(_CONFIGURATION.format(runtime=runtime))
    # podman takes no `runroot` of more than 50 characters; its own clean-up after a container says so to nobody.
    with tempfile.TemporaryDirectory(prefix="howdah-podman-") as run:
        storage.write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/storage"\nrunroot = "{run}"\n'
            f'rootless_storage_path = "{directory}/storage"\n'
        )
        own = {"CONTAINERS_CONF": str(configuration), "CONTAINERS_STORAGE_CONF": str(storage)}
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR") if name in os.environ}
        yield Tool("podman", {**own, **kept})
        _wait_for_clean_up(run, str(storage))


def _wait_for_clean_up(run: str, storage: str) -> None:
    """Wait for the processes that clean up after containers, those of podman and those that howdah started last:
    otherwise they would make `run` anew."""
    deadline = time.monotonic() + LIMIT_S
    while any(_cleans_up(process, run.encode(), storage.encode()) for process in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < deadline, f"podman still cleans up {run}"
        time.sleep(0.05)


def _cleans_up(process: Path, run: bytes, storage: bytes) -> bool:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        command = (process / "cmdline").read_bytes()
        is_podman = command.partition(b"\0")[0].rpartition(b"/")[2] == b"podman"
        return run in command or (is_podman and storage in (process / "environ").read_bytes())
    return False


@contextlib.contextmanager
def podman_for_path(directory: Path) -> Iterator[Tool]:
    """Write a podman that keeps its containers and images in `directory` without any variable but PATH."""
    program = directory / "podman"
    with podman(directory) as tool:
        lines = "".join(
            f"export {name}='{value}'\n" for name, value in tool.environment.items() if name.startswith("CONTAINERS_")
        )
        program.write_text(f'#!/bin/sh\n{lines}exec {shutil.which("podman")} "$@"\n')
        program.chmod(0o755)
        yield Tool("podman", {"PATH": f"{directory}:{os.environ['PATH']}"})


def root_archive(directory: Path) -> Path:
    """Write the archive of a root directory with a shell and a few programs of this machine."""
    archive = directory / "rootfs.tar"
    if not archive.exists():
        paths = {path for name in _PROGRAMS for path in _with_libraries(shutil.which(name) or "")}
        with tarfile.open(archive, "w") as tar:
            for name in ("tmp", "proc", "sys", "dev", "etc", "run"):
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            release = tarfile.TarInfo("etc/os-release")
            release.size = len(RELEASE)
            tar.addfile(release, io.BytesIO(RELEASE.encode()))
            for path in sorted(paths):
                tar.add(os.path.realpath(path), path.lstrip("/"))
                if path.startswith(("/usr/bin/", "/bin/")):
                    tar.add(os.path.realpath(path), f"bin/{Path(path).name}")
    return archive


@functools.cache
def _with_libraries(path: str) -> tuple[str, ...]:
    if not path:
        return ()
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return (path, *re.findall(r"(/\S+)", done.stdout.replace(f"{path}:", "")))
