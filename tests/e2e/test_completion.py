"""Tests that bash, zsh and fish themselves complete jobs, tasks, engines and settings on a line that somebody types."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from local_jobs import HOWDAH, LIMIT_S, LocalJobs, eventually, run_command

TRIES = 6
FORGET_LINE = "\x15"
TASK = "worker:0"
"""Bash takes the colon for the end of a word, unless the script prevents it."""
needs = {shell: pytest.mark.skipif(not shutil.which(shell), reason=f"no {shell}") for shell in ("bash", "zsh", "fish")}

# Three commands in advance, a shell, and six lines; with fish a line's last command may begin as its limit ends.
pytestmark = pytest.mark.timeout((3 + 1 + 6 * 2) * LIMIT_S)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    """A home in which a job named `train` has ended."""
    made = LocalJobs(tmp_path_factory.mktemp("completion"))
    made.environment |= {"PATH": f"{Path(HOWDAH).parent}:{made.environment['PATH']}", "TERM": "dumb"}
    made("run", made.job_file("true", name="train"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def lines(jobs: LocalJobs) -> dict[str, str]:
    """Lines as somebody begins them, with the word that must stand at their end after a tabulator."""
    return {
        "howdah expl": "explain",
        "howdah status lo": jobs("list", "-q").strip(),
        "howdah logs tr": "train",
        "howdah logs train worker:": TASK,
        "howdah run --on sl": "slurm",
        "howdah config get log_limit": "log_limit_mib",
    }


def typed(shell: pexpect.spawn[str], line: str, word: str) -> None:
    """Type a line and a tabulator until the whole word stands there. The shell draws the line anew, or goes on in it;
    it offers nothing when this machine has not answered within `howdah`'s two seconds."""
    whole = rf"{re.escape(line.rpartition(' ')[0])} {re.escape(word)}\b"
    for _ in range(TRIES):
        shell.send(f"{line}\t")
        try:
            shell.expect(whole, timeout=LIMIT_S / TRIES)
        except pexpect.TIMEOUT:
            continue
        finally:
            shell.send(FORGET_LINE)
        return
    raise AssertionError(f"{line} was never completed to {word}: {shell.before}")


@needs["bash"]
def test_bash(jobs: LocalJobs, lines: dict[str, str]) -> None:
    shell = pexpect.spawn("bash", ["--norc", "-i"], env=jobs.environment, encoding="utf-8", timeout=LIMIT_S)
    shell.sendline('bind "set enable-bracketed-paste off"; source <(howdah completion bash); echo rea""dy')
    shell.expect("ready")
    for line, word in lines.items():
        typed(shell, line, word)
    shell.close(force=True)


@needs["zsh"]
def test_zsh(jobs: LocalJobs, lines: dict[str, str]) -> None:
    functions = jobs.directory / "zfunc"
    functions.mkdir()
    (functions / "_howdah").write_text(jobs("completion", "zsh"))
    shell = pexpect.spawn("zsh", ["-f", "-i"], env=jobs.environment, encoding="utf-8", timeout=LIMIT_S)
    shell.sendline(f"fpath+=({functions}); autoload -Uz compinit; compinit -u -D; echo rea''dy")
    shell.expect("ready")
    for line, word in lines.items():
        typed(shell, line, word)
    shell.close(force=True)


@needs["fish"]
def test_fish(jobs: LocalJobs, lines: dict[str, str]) -> None:
    script = jobs.directory / "completion.fish"
    script.write_text(jobs("completion", "fish"))
    for line, word in lines.items():
        commands = f"source {shlex.quote(str(script))}; complete --do-complete {shlex.quote(line)}"

        def offered(commands: str = commands) -> list[str]:
            done = run_command(["fish", "--no-config", "--command", commands], env=jobs.environment)
            return [each.partition("\t")[0] for each in done.stdout.splitlines()]

        eventually(lambda word=word, offered=offered: word in offered(), f"{line} completed to {word}")
