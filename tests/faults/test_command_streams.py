"""Tests the command line with closed or full output, low limits of open files, and interrupting signals."""

from __future__ import annotations

import array
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 60


@dataclass
class Started:
    """A command that runs, and the file that it prints to."""

    process: subprocess.Popen[bytes]
    printed: Path

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def prints(self, words: str) -> None:
        """Wait until it has."""
        deadline = time.monotonic() + LIMIT_S
        while words not in self.printed.read_text():
            assert time.monotonic() < deadline, f"{words!r} never came: {self.printed.read_text()}"
            time.sleep(0.02)


@dataclass
class Shell:
    """Runs lines of bash, in which `howdah` is ours, in a directory with the job files `quick.yaml` and `long.yaml`."""

    directory: Path
    home: Path
    started: list[Started] = field(default_factory=list)

    def environment(self, **more: str) -> dict[str, str]:
        dropped = ("HADOOP_CONF_DIR", "HOWDAH_", "XDG_", "CUDA_", "LC_", "LANG", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        path = f"{Path(HOWDAH).parent}:{kept['PATH']}"
        return {**kept, "HOWDAH_HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **more}

    def run(self, line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        command = ["bash", "-o", "pipefail", "-c", line]
        environment = self.environment(**variables)
        done = subprocess.run(command, env=environment, cwd=self.directory, capture_output=True, timeout=LIMIT_S)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done

    def start(self, *arguments: str) -> Started:
        printed = self.directory / f"printed-{len(self.started)}"
        with printed.open("wb") as out:
            process = subprocess.Popen(
                [HOWDAH, *arguments], env=self.environment(), cwd=self.directory, stdout=out, stderr=out
            )
        self.started.append(Started(process, printed))
        return self.started[-1]

    def states(self) -> list[str]:
        listed = self.run("howdah list --json").stdout.decode().splitlines()
        return [json.loads(line)["state"] for line in listed]

    def cancel_all(self) -> None:
        for path in (self.home / "state" / "jobs").glob("local-*"):
            self.run(f"howdah cancel {path.name}")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "directory", tmp_path / "home")
    shell.directory.mkdir()
    for name, command in (("quick", "true"), ("long", "sleep 300")):
        role = {"command": command, "resources": {"memory": "64MiB"}}
        (shell.directory / f"{name}.yaml").write_text(
            json.dumps({"roles": {"worker": role}, "timeouts": {"stop": "1s"}})
        )
    yield shell
    for started in shell.started:
        started.process.kill()
        started.process.wait(LIMIT_S)
    shell.cancel_all()


def await_full(pipe: int) -> None:
    """Wait until the writer of a pipe stands still because nobody reads it."""
    size, there, last = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), array.array("i", [0]), -1
    deadline = time.monotonic() + LIMIT_S
    while there[0] < size - select.PIPE_BUF or there[0] != last:
        assert time.monotonic() < deadline, f"there were never more than {there[0]} bytes of {size} in the pipe"
        time.sleep(0.1)
        last = there[0]
        fcntl.ioctl(pipe, termios.FIONREAD, there)


class TestStreams:
    @pytest.mark.parametrize("encoding", ["gbk", "latin-1"])
    def test_a_terminal_that_lacks_characters(self, shell: Shell, encoding: str) -> None:
        command = "howdah run --name '✓ 😀' --set roles.worker.command='echo \"你好 ✓ 😀 end\"' quick.yaml"
        done = shell.run(command, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done
        assert "end" in done.stdout.decode(encoding)
        assert "\\ud83d\\ude00" in done.stdout.decode(encoding)
        listed = shell.run("howdah list --json", PYTHONIOENCODING=encoding).stdout.decode(encoding)
        assert json.loads(listed)["name"] == "✓ 😀"

    @pytest.mark.parametrize(
        ("command", "told"),
        [("echo text | {}", True), ("{} < quick.yaml", True), ("{} < /dev/null", False), ("true | {}", False)],
    )
    def test_that_no_task_reads_the_standard_input_is_told(self, shell: Shell, command: str, told: bool) -> None:
        done = shell.run(command.format("howdah plan -- cat"))
        assert done.returncode == 0, done
        assert (b"standard input is not sent to the job" in done.stderr) == told

    @pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
    def test_closed_streams(self, shell: Shell, closed: str) -> None:
        assert [shell.run(f"howdah {words} {closed}").returncode for words in ("run quick.yaml", "list", "-h")] == [
            0
        ] * 3
        assert shell.states() == ["SUCCEEDED"]

    def test_a_reader_that_goes(self, shell: Shell) -> None:
        done = shell.run("howdah run long.yaml | head -n 1")
        assert done.returncode == 141
        assert b"the job goes on; `howdah attach local-" in done.stderr
        assert shell.states() in (["PENDING"], ["RUNNING"])
        assert shell.run("set +o pipefail; howdah config --help | true; echo ${PIPESTATUS[0]}").stdout in (
            b"141\n",
            b"0\n",
        )

    def test_a_directory_that_is_gone(self, shell: Shell) -> None:
        for words in ("list", "run ../quick.yaml", "config", "data ls"):
            done = shell.run(f"mkdir gone; cd gone; rmdir ../gone; howdah {words}")
            assert (done.returncode, done.stdout) == (66, b"")
            assert b"the current directory has been removed" in done.stderr

    @pytest.mark.parametrize("files", [16, 32])
    def test_too_few_open_files(self, shell: Shell, files: int) -> None:
        done = shell.run(f"ulimit -n {files}; howdah run quick.yaml")
        assert (done.returncode, done.stdout) == (69, b"")
        assert f"may have {files} files open at once (`ulimit -n`)".encode() in done.stderr

    def test_a_low_limit_that_can_be_raised(self, shell: Shell) -> None:
        assert shell.run("ulimit -S -n 16; howdah run quick.yaml").returncode == 0


class TestInterrupts:
    def test_another_interrupt_does_not_stop_the_cancelling(self, shell: Shell) -> None:
        command = shell.start("run", "long.yaml")
        command.prints(" runs: ")
        command.interrupt()
        command.prints("cancelling local-")
        command.interrupt()
        assert command.process.wait(LIMIT_S) == 2
        assert shell.states() == ["CANCELLED"]

    def test_who_insists_is_told_that_the_job_may_go_on(self, shell: Shell) -> None:
        end = shell.directory / "end"
        ignores_term = f"roles.worker.command=trap '' TERM; until [ -e {end} ]; do sleep 0.1; done"
        command = shell.start("run", "--set", f"timeouts.stop={LIMIT_S}s", "--set", ignores_term, "long.yaml")
        command.prints(" runs: ")
        command.interrupt()
        command.prints("cancelling local-")
        deadline = time.monotonic() + LIMIT_S
        while command.process.poll() is None:  # two signals that arrive at once are one
            assert time.monotonic() < deadline, f"it never ended: {command.printed.read_text()}"
            command.interrupt()
            time.sleep(0.1)
        command.prints("Ctrl-C twice more to leave at once")
        command.prints("the job may go on; `howdah status local-")
        end.touch()

    def test_while_nobody_reads_the_output(self, shell: Shell) -> None:
        said = shell.directory / "said"
        arguments = ["run", "--set", "roles.worker.command=head -c 9000000 /dev/zero | tr '\\0' '\\n'; sleep 300"]
        with said.open("wb") as err:
            process = subprocess.Popen(
                [HOWDAH, *arguments, "long.yaml"],
                env=shell.environment(),
                cwd=shell.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=err,
            )
        command = Started(process, said)
        shell.started.append(command)
        assert process.stdout is not None
        with process.stdout:
            await_full(process.stdout.fileno())
            command.interrupt()
            command.prints("cancelling local-")
            deadline = time.monotonic() + LIMIT_S
            while process.poll() is None:  # those that come while it cancels are held back
                assert time.monotonic() < deadline, f"it never ended: {said.read_text()}"
                command.interrupt()
                time.sleep(0.5)
        assert process.returncode == 130, said.read_text()
        assert "had ended already: CANCELLED" in said.read_text()
        assert shell.states() == ["CANCELLED"]

    def test_detached_twice(self, shell: Shell) -> None:
        command = shell.start("run", "--on-interrupt", "detach", "long.yaml")
        command.prints(" runs: ")
        command.interrupt()
        command.prints("the job goes on; `howdah attach local-")
        command.interrupt()
        command.process.wait(LIMIT_S)
        assert shell.states() == ["RUNNING"]

    @pytest.mark.parametrize("following", [["run", "long.yaml"], ["submit", "--wait", "long.yaml"], ["attach"]])
    def test_sigterm_leaves_the_job_running(self, shell: Shell, following: list[str]) -> None:
        if following == ["attach"]:
            shell.run("howdah submit long.yaml")
        command = shell.start(*following)
        command.prints("RUNNING" if "--wait" in following else " runs: ")
        command.interrupt(signal.SIGTERM)
        assert command.process.wait(LIMIT_S) == 143
        command.prints("the job goes on; `howdah attach local-")
        assert shell.states() == ["RUNNING"]

    def test_sigterm_cancels_where_that_was_asked_for(self, shell: Shell) -> None:
        command = shell.start("run", "--on-interrupt", "cancel", "long.yaml")
        command.prints(" runs: ")
        command.interrupt(signal.SIGTERM)
        assert command.process.wait(LIMIT_S) == 2
        assert shell.states() == ["CANCELLED"]
