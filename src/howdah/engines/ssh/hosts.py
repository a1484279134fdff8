"""The hosts of the setting `ssh.hosts`, and the command that runs `host_program` on one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from howdah.errors import EngineRejected, EngineUnavailable
from howdah.spec.message import message
from howdah.spec.units import memory_mib
from howdah.spec.values import dataclass

LIMIT_S = 20.0
"""Seconds within which a host must have answered."""
_HOST = re.compile(r"(?:([\w.][\w.-]*)@)?([\w.][\w.-]*)(?::(\d{1,5}))?((?:/(?:gpus|vcores|memory)=[^/]*)*)")
_OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")


@dataclass(frozen=True)
class Host:
    """A host, and the way to reach it."""

    name: str
    """The host without user and port: the node of its containers."""
    ssh: tuple[str, ...]
    """The command line of ssh, without the remote command."""
    given: Mapping[str, int]
    """Its gpus, vcores and memory_mib, as far as the setting gives them; the host is asked for the rest."""

    def command(self) -> tuple[str, ...]:
        """Return the command that runs the program with whose source `greeting` begins."""
        return (*self.ssh, f"exec python3 -I -c 'import sys; exec(sys.stdin.buffer.read({len(SOURCE)}))'")

    def greeting(self, **values: Any) -> bytes:
        """Return the first bytes that the program reads."""
        return SOURCE + json.dumps({"given": self.given, **values}).encode() + b"\n"

    def address(self) -> str:
        """Return the name by which other hosts reach it: the HostName of ssh's configuration.

        Raises:
            EngineUnavailable: a command in the configuration takes too long.
        """
        command = [self.ssh[0], "-G", *self.ssh[1:]]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"ssh -G {self.name}: no answer within {LIMIT_S:.0f} s") from None
        found = re.search(r"^hostname (.+)$", done.stdout, re.M)
        return found[1] if found else self.name

    def ask(self, directories: Sequence[str]) -> dict[str, Any]:
        """Return the host's answer about itself, with the numbers by which its file systems know these directories.

        Raises:
            EngineUnavailable: it does not answer; the message has ssh's reason.
        """
        try:
            greeting = self.greeting(job="", directories=directories)
            done = subprocess.run(self.command(), input=greeting, capture_output=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"{self.name}: no answer within {LIMIT_S:.0f} s") from None
        if answer := next(filter(None, map(parse, done.stdout.splitlines())), None):
            return answer
        raise EngineUnavailable(f"{self.name}: {reason(done.stderr, done.returncode)}")


def hosts_of(options: Mapping[str, Any]) -> list[Host]:
    """Return the hosts of the setting.

    Raises:
        EngineRejected: it names none, one twice, or one in another form.
    """
    found: dict[str, Host] = {}
    config = ("-F", options["config"]) if options["config"] else ()
    for entry in options["hosts"]:
        match = _HOST.fullmatch(entry)
        try:
            pairs = dict(pair.split("=") for pair in match[4].split("/")[1:]) if match else {}
            given = {"memory_mib" if key == "memory" else key: _number(key, pairs[key]) for key in pairs}
        except ValueError as error:
            raise EngineRejected(f"ssh.hosts: {entry!r}: {error}") from None
        if match is None or match[2] in found:
            form = "must be [user@]host[:port], then any of /gpus=8, /vcores=64, /memory=512GiB; each host once"
            raise EngineRejected(f"ssh.hosts: {entry!r} {form}")
        user, name, port, _ = match.groups()
        ssh = ["ssh", "-T", *(word for option in _OPTIONS for word in ("-o", option)), *config]
        ssh += [*(("-l", user) if user else ()), *(("-p", port) if port else ()), "--", name]
        found[name] = Host(name, tuple(ssh), given)
    if not found:
        raise EngineRejected("ssh.hosts names no host: howdah config set ssh.hosts HOST,HOST")
    return list(found.values())


def _number(key: str, text: str) -> int:
    return memory_mib(text) if key == "memory" else int(text)


def parse(line: bytes) -> dict[str, Any] | None:
    """Return a line of the program; None for what a login shell prints."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def reason(stderr: bytes, status: int | None) -> str:
    """Return why ssh has ended: its last line, and what to do if it refused a key."""
    text = stderr.decode("utf-8", "replace")
    if "HOST IDENTIFICATION HAS CHANGED" in text and "Host key verification failed" in text:
        return message("its host key is another than the known one: if that is right, remove the old (ssh-keygen -R)")
    lines = text.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"ssh ended with status {status}")


SOURCE = resources.files(__package__).joinpath("host_program.py").read_bytes()
