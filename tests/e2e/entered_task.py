"""A user enters a running task: by a command, a copy, a forwarded port, and a shell that outlives client and master."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pexpect
from clusters import HOWDAH, Cluster, ScenarioJob
from submitted_job import LIMIT_S, WAITING, until

from howdah.spec import State
from howdah.spec.events import TaskEntered, TookOver

PROGRAM = "echo made >made.txt; python3 -m http.server $HOWDAH_PORT_WEB --bind 127.0.0.1 & "


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([HOWDAH, *arguments], input=given, capture_output=True, timeout=LIMIT_S)


def enter(job: ScenarioJob, base: Path) -> None:
    """Use all the commands."""
    job.wait_started(0)
    line = "read word; echo $word $HOWDAH_TASK; echo wrong >&2; exit 7"
    done = run("exec", job.id, "worker:0", "--", "sh", "-c", line, given=b"hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"hello worker:0\n", b"wrong\n"), done
    refused = run("exec", job.id, "worker:0", "--", "no-such-program")
    assert b"no-such-program cannot be run: No such file or directory" in refused.stderr
    copy_files(job, base)
    with forwarded(job) as address:
        assert b"made.txt" in urllib.request.urlopen(address, timeout=60).read()
    wanted = {("command", "sh"), ("copy", "sent"), ("port", "web")}
    until(
        lambda: wanted <= {(event.access, event.detail) for event in job.of(TaskEntered)}, "the events of these entries"
    )


def copy_files(job: ScenarioJob, base: Path) -> None:
    source = base / "sent"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "data").write_bytes(content := os.urandom(300_000))
    (source / "run.sh").write_text("echo here\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    assert run("cp", str(source), f"{job.id}:worker:0:sent").returncode == 0
    assert run("exec", job.id, "worker:0", "--", "sh", "-c", "sent/link; cat made.txt").stdout == b"here\nmade\n"
    done = run("cp", f"{job.id}:worker:0:sent", str(base / "back"))
    assert done.returncode == 0, done.stderr
    assert (base / "back" / "inner" / "data").read_bytes() == content
    assert os.access(base / "back" / "run.sh", os.X_OK)
    assert run("cp", str(source), f"{job.id}:worker:0:sent").stdout.endswith(b"/sent/sent\n")  # into it, as cp does
    assert b"sent/sent: exists already" in run("cp", str(source), f"{job.id}:worker:0:sent").stderr
    missing = run("cp", f"{job.id}:worker:0:nothing", str(base / "nothing"))
    assert b"nothing: No such file or directory" in missing.stderr
    assert not (base / "nothing").exists()


@contextlib.contextmanager
def forwarded(job: ScenarioJob) -> Iterator[str]:
    """Forward a port while the context is entered."""
    command = [HOWDAH, "forward", job.id, "worker:0", "web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        assert forwarding.stdout
        yield f"http://{forwarding.stdout.readline().split()[0]}/"
        forwarding.terminate()


class Shell:
    """A shell in a task, which a user types in."""

    def __init__(self, *arguments: str) -> None:
        self.terminal = pexpect.spawn(
            HOWDAH, ["shell", *arguments], timeout=LIMIT_S, dimensions=(30, 100), maxread=1 << 16
        )
        self.terminal.str_last_chars = 2000

    def type(self, line: str, answer: str) -> None:
        """Type a line, and wait for the answer."""
        self.terminal.sendline(line)
        self.terminal.expect(answer)

    def kill(self) -> None:
        """Kill the client."""
        self.terminal.kill(signal.SIGKILL)
        self.terminal.wait()

    def leave(self) -> int:
        """Let the shell exit, and return the client's status."""
        self.terminal.sendline("exit 3")
        self.terminal.expect(pexpect.EOF)
        self.terminal.wait()
        return int(self.terminal.exitstatus)


def a_user_enters_a_task(cluster: Cluster, base: Path) -> None:
    job = ScenarioJob(cluster, base, PROGRAM + WAITING.format(mark=base / "$SCENARIO"), {"ports": ("web",)})
    enter(job, base)
    shell = Shell(job.id, "worker:0")
    shell.type("stty size; echo in-$HOWDAH_TASK", "30 100\r\nin-worker:0")
    # The program itself says that it runs: Ctrl-C that comes while bash starts it is lost.
    shell.type("sh -c 'echo now-$((1 + 1)); exec sleep 600'", "now-2")
    shell.terminal.sendcontrol("c")
    shell.type("echo status-$?", "status-130")
    shell.type("kept=yes; echo is-$kept", "is-yes")
    shell.kill()
    shell = Shell(job.id, "worker:0")
    shell.type("echo $kept-$kept", "yes-yes")
    if "a killed master" not in cluster.lacks:
        os.kill(job.master(), signal.SIGKILL)
        until(lambda: job.of(TookOver), "the next master")
        shell.type("echo after-$kept", "after-yes")
    assert shell.leave() == 3
    assert job.finish().state is State.SUCCEEDED
