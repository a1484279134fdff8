"""Hosts for tests of the engine `ssh`: real sshds of this user on loopback addresses, with separate host keys and
temporary directories."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
LIMIT_S = 30.0


class SshHost:
    """One sshd. `name` is the host, as `ssh.hosts` has it."""

    def __init__(self, base: Path, name: str) -> None:
        self.name, self.directory, self.tmp = name, base / name, base / name / "tmp"
        self.bin = base / name / "bin"
        for directory in (self.tmp, self.bin):
            directory.mkdir(parents=True)
        generate_key(self.directory / "host_key")
        with socket.socket() as found:
            found.bind((name, 0))
            self.port = found.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self.disk_bytes = 0
        (self.directory / "sshd_config").write_text(
            f"""Port {self.port}
ListenAddress {name}
HostKey {self.directory}/host_key
AuthorizedKeysFile {base}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
        )

    def start(self, environment: Mapping[str, str] | None = None, disk_bytes: int = 0) -> None:
        """Start the sshd, whose programs have these further variables, and wait until it listens. `disk_bytes` limits
        the room of the host."""
        self.disk_bytes = disk_bytes
        with (self.directory / "log").open("ab") as log:
            # With the user's own HOME a login would run ~/.bashrc, which may hold locks when it is killed.
            given: dict[str, object] = {
                "HOME": self.directory,
                "TMPDIR": self.tmp,
                "PATH": f"{self.bin}:{os.environ['PATH']}",
            }
            given |= environment or {}
            variables = " ".join(f"{name}={value}" for name, value in given.items())
            command = [str(SSHD), "-D", "-e", "-f", str(self.directory / "sshd_config"), "-o", f"SetEnv {variables}"]
            if disk_bytes:
                mount = f'mount -t tmpfs -o size={disk_bytes} none "$0" && exec "$@"'
                command = ["unshare", "--mount", "/bin/sh", "-c", mount, str(self.tmp), *command]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + LIMIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.name, self.port), 1.0):
                return
            assert time.monotonic() < deadline, (self.directory / "log").read_text()
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """Return the processes that run on this host: those with its temporary directory."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"TMPDIR={self.tmp}\0".encode() in entry.read_bytes():
                    found.append(int(entry.parent.name))
        return found

    def lose(self) -> None:
        """Kill the sshd and all processes of the host."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        while found := self.processes():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


class SshHosts:
    """Three hosts, and the ssh configuration that leads to them."""

    def __init__(self, base: Path) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # sshd refuses to start without it
        self.base, self.home, self.config = base, base / "home", base / "ssh_config"
        self.home.mkdir()
        generate_key(base / "user_key")
        self.hosts = [SshHost(base, f"127.0.0.{number}") for number in (2, 3, 4)]
        self.write_config(base / "user_key")
        for host in self.hosts:
            key = (host.directory / "host_key.pub").read_text().split()[:2]
            with (base / "known_hosts").open("a") as known:
                known.write(f"[{host.name}]:{host.port} {' '.join(key)}\n")
            host.start()

    def write_config(self, key: Path) -> None:
        """Let ssh use this key, and none of the user's own files."""
        lines = [f"Host {host.name}\n  Port {host.port}" for host in self.hosts]
        common = f"User {getpass.getuser()}\n  IdentityFile {key}\n  IdentitiesOnly yes\n  IdentityAgent none"
        known = f"UserKnownHostsFile {self.base}/known_hosts\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes"
        self.config.write_text("\n".join([*lines, f"Host *\n  {common}\n  {known}\n"]))

    def settings(self, room: str = "/gpus=2/vcores=4/memory=4GiB") -> dict[str, str]:
        """Return the variables that make these the hosts of the engine."""
        return {
            "HOWDAH_SSH_HOSTS": ",".join(host.name + room for host in self.hosts),
            "HOWDAH_SSH_HOME": str(self.home),
            "HOWDAH_SSH_CONFIG": str(self.config),
        }

    def stop(self) -> None:
        """End everything."""
        for host in self.hosts:
            host.lose()


def generate_key(path: Path) -> None:
    """Make a pair of keys."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=LIMIT_S)
