"""Tests on a real cluster that a spare takes over a killed executor's task, and that an elastic gang starts smaller."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine

from howdah.sandbox import Sandbox


@pytest.fixture
def yarn(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def test_a_spare_takes_the_place_of_a_killed_executor(yarn: CommandLine) -> None:
    say = 'echo "$HOWDAH_TASK attempt $HOWDAH_ATTEMPT epoch $HOWDAH_EPOCH executor $PPID"'
    command = f'{say}; [ "$HOWDAH_EPOCH" = 2 ] && sleep 3 || sleep 100'
    job = yarn.job_file(command, role={"spares": 1}, retries=1, replicas=2)
    running = yarn.start("run", "--on", "yarn", "--logs", "all", job)
    running.says("worker:2 has a container")
    printed = running.says("| worker:1 attempt 1 epoch 1 executor ")
    (executor,) = re.findall(r"worker:1 attempt 1 epoch 1 executor (\d+)\n", printed)
    os.kill(int(executor), signal.SIGKILL)
    done = running.done()
    assert done.code == 0, done.text
    assert "worker:1 takes the container of worker:2 on" in done.text
    tasks = {task["task"]: (task["attempt"], task["exit"]) for task in yarn.status(done.job)["tasks"]}
    assert tasks["worker:0"] == (1, "exit code 0")
    assert tasks["worker:1"] == (2, "exit code 0")
    assert not yarn.left(done.job)


def test_too_few_containers_and_the_gang_starts_with_those(yarn: CommandLine) -> None:
    """Three nodes, four workers, each on a node of its own: the files of the fourth are dealt to the others."""
    for number in range(6):
        (yarn.directory / f"file{number}").write_text(str(number))
    job = yarn.job_file(
        'echo "$HOWDAH_TASK of $HOWDAH_REPLICAS has $(ls data | xargs)"',
        replicas=4,
        role={"min_replicas": 2, "placement": {"spread": True}},
        timeouts={"hold": "8s"},
        inputs=[{"path": "file*", "to": "data"}],
    )
    done = yarn("run", "--on", "yarn", "--logs", "all", job)
    assert done.code == 0, done.text
    assert "worker goes on with 3 tasks: no container came within 8 s" in done.text
    parts = dict(re.findall(r"^worker:\d \| (worker:\d) of 3 has (.*)$", done.text, re.MULTILINE))
    assert parts == {f"worker:{number}": f"file{number} file{number + 3}" for number in range(3)}
    assert not yarn.left(done.job)
