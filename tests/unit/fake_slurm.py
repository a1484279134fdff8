"""Slurm's commands as a shell script, which answers with the contents of files that a test writes."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

_SCRIPT = """#!/bin/sh
cd {state}
name=${{0##*/}}
[ $name = srun ] || echo "$name $*" >> calls
while [ -e hang-$name ]; do sleep 0.05; done
if [ -e down ] && [ $name != srun ]; then echo "$name: error: Unable to contact slurm controller" >&2; exit 1; fi
case "$name $1 $2" in
    "scontrol show hostnames") echo "$3" | tr , '\\n' ;;
    "scontrol show node") echo "NodeName=$4 NodeAddr=127.0.0.1" ;;
    "scontrol show job") cat job-$4 2>/dev/null || echo "JobId=$4 TimeLimit=UNLIMITED PreemptTime=None" ;;
    "scontrol show config") echo "MaxArraySize            = 3" ;;
    sinfo*) cat nodes 2>/dev/null; true ;;
    squeue*) cat squeue 2>/dev/null; true ;;
    "sbatch --version "*) cat version 2>/dev/null || echo slurm-wlm 22.05.8 ;;
    sbatch*)
        if [ -e refused ]; then echo 'sbatch: error: no more jobs' >&2; exit 1; fi
        number=$(($(cat number 2>/dev/null || echo 100) + 1))
        echo $number > number; cat > script-$number
        if [ -e late ]; then echo 'sbatch: error: Batch job submission failed: Socket timed out' >&2; exit 1; fi
        echo $number ;;
    srun*)
        case "$*" in
            *--exact*--job-name=probe*) exit $(cat room) ;;
            *--overlap*--job-name=probe*) exit $(cat probe) ;;
            *--job-name=guard*) exec sleep 600 ;;
        esac
        trap 'exit 143' TERM
        job=$(echo "$*" | sed 's/.*--job-name=\\([^ ]*\\).*/\\1/')
        echo $$ > pid-$job
        until [ -e end-$job ]; do sleep 0.05; done
        exit $(cat end-$job) ;;
esac
"""


class FakeSlurm:
    """The commands, first on this process's PATH."""

    def __init__(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.bin = state, state / "bin"
        self.bin.mkdir(parents=True)
        for name in ("scontrol", "sinfo", "squeue", "sbatch", "scancel", "srun"):
            (self.bin / name).write_text(_SCRIPT.format(state=state))
            (self.bin / name).chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{self.bin}:{os.environ['PATH']}")

    def say(self, name: str, text: str) -> None:
        """Let commands answer with a text from now on."""
        (self.state / f"{name}.new").write_text(text)
        (self.state / f"{name}.new").replace(self.state / name)

    def say_jobs(self, *rows: str) -> None:
        """Let squeue know jobs: `101_0 RUNNING n4`, or `102 PENDING`."""
        lines = []
        for row in rows:
            id_, state, node = [*row.split(), ""][:3]
            array, _, index = id_.partition("_")
            number = f"{int(array) + 500 + int(index)}" if index and state == "RUNNING" else array
            lines.append(f"{id_}|{number}|{array}|{index or 'N/A'}|{state}|Priority|{node}|N/A|main\n")
        self.say("squeue", "".join(lines))

    def calls(self, name: str) -> list[str]:
        """Return the arguments of all calls of a command."""
        path = self.state / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)
