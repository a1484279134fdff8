"""Tests `howdah ssh-proxy` with OpenSSH's own programs: commands, a terminal, copies and forwarded ports."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from submitted_job import LIMIT_S, until

from howdah.sandbox.addresses import free_port

HOWDAH = str(Path(sys.executable).with_name("howdah"))
PROGRAM = "echo made >made.txt; exec python3 -m http.server $PORT --bind 127.0.0.1"

pytestmark = [
    pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh on this machine"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


class Entered:
    """A job on this machine, and what ssh needs to enter it."""

    def __init__(self, directory: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"}
        self.port, self.environment = free_port(), {**kept, "XDG_STATE_HOME": str(directory)}
        command = ["submit", "--set", f"env.PORT={self.port}", "--", PROGRAM]
        self.job = self.howdah(*command).strip()
        self.options = [
            *("-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "LogLevel=ERROR", "-o", f"ProxyCommand={HOWDAH} ssh-proxy {self.job}"),
        ]
        until(lambda: "RUNNING" in self.howdah("status", self.job).partition("worker:0")[2], "the program")

    def howdah(self, *arguments: str) -> str:
        done = subprocess.run(
            [HOWDAH, *arguments], env=self.environment, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ssh(self, *words: str, program: str = "ssh", given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [program, *self.options, *words]
        return subprocess.run(command, env=self.environment, input=given, capture_output=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entered]:
    entered = Entered(tmp_path_factory.mktemp("state"))
    yield entered
    entered.howdah("cancel", entered.job)


def test_a_command_has_its_streams_and_its_status(entered: Entered) -> None:
    done = entered.ssh("task", "read word; echo $word-$HOWDAH_TASK; echo wrong >&2; exit 5", given=b"hello\n")
    said = done.stderr.splitlines()[-1:]  # on a busy machine a line before it says what is waited for
    assert (done.returncode, done.stdout, said) == (5, b"hello-worker:0\n", [b"wrong"])
    big = os.urandom(3_000_000)
    assert entered.ssh("task", "cat", given=big).stdout == big


def test_a_terminal_is_one(entered: Entered) -> None:
    done = entered.ssh("-tt", "task", "tty; echo $TERM; exit 4")
    assert done.returncode == 4
    assert b"/dev/pts/" in done.stdout


def test_files_are_copied_by_scp(entered: Entered, tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(content := os.urandom(500_000))
    done = entered.ssh(str(tmp_path / "sent"), "task:copied", program="scp")
    assert done.returncode == 0, done.stderr
    assert entered.ssh("task:copied", str(tmp_path / "back"), program="scp").returncode == 0
    assert (tmp_path / "back").read_bytes() == content
    assert entered.ssh("task", "cat made.txt").stdout == b"made\n"


def test_ports_of_the_task_are_forwarded_and_no_others(entered: Entered) -> None:
    here, elsewhere = free_port(), free_port()
    forwards = ["-L", f"{here}:localhost:{entered.port}", "-L", f"{elsewhere}:192.0.2.1:80"]
    command = ["ssh", *entered.options, "-N", *forwards, "task"]
    with subprocess.Popen(command, env=entered.environment, start_new_session=True) as forwarding:
        try:
            until(lambda: _page(f"http://127.0.0.1:{here}/"), "the forwarded page")
            assert not _page(f"http://127.0.0.1:{elsewhere}/")
        finally:
            os.killpg(forwarding.pid, signal.SIGTERM)


def _page(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return bytes(answer.read())
    except OSError:
        return b""
