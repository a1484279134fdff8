"""Tests that a failed part of a pipeline is not hidden by the command that reads it."""

from __future__ import annotations

import subprocess

import pytest

from howdah.executor.process.pipelines import watch_pipelines


def run(line: str) -> tuple[int, str]:
    line = watch_pipelines(line.replace("FAIL", "sh -c 'exit 3'"))
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "FAIL | tee log",
        "FAIL 2>&1 | tee log | cat",
        "true && FAIL |& cat",
        "echo 'a | b'; FAIL | tee log",
        "FAIL | (sleep 0.1; cat)",
        "set -e; cd /; FAIL | tee log",
    ],
)
def test_a_part_that_fails_is_the_status_of_the_task(line: str) -> None:
    code, said = run(line.replace("log", "/dev/null"))
    assert code == 3
    assert "[howdah: a part of the pipeline ended with exit code 3, and so does the task" in said


@pytest.mark.parametrize("line", ["FAIL | head", "FAIL | /bin/grep -v x || true", "FAIL 2>&1 | awk 1"])
def test_behind_a_command_that_chooses_lines_it_is_told(line: str) -> None:
    code, said = run(line)
    assert code in (0, 1)
    assert ("exit code 3, and the task with that of its last command" in said) == ("grep" not in line)


@pytest.mark.parametrize(
    "line",
    [
        "seq 1000000 | head -1",
        "seq 1000000 | (read first; echo $first)",
        "echo a | cat | tee /dev/null",
        "false | cat; true",
        "echo a || echo b",
        "grep -E 'a|b' /dev/null || true",
    ],
)
def test_what_has_not_failed_goes_on_working(line: str) -> None:
    code, said = run(line)
    assert code == 0
    assert "howdah" not in said


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("set +o pipefail; FAIL | tee /dev/null", 0),
        ("set -o pipefail; FAIL | tee /dev/null", 3),
        ("FAIL | tee /dev/null; exit 0", 0),
        ("FAIL | tee /dev/null; exit ${PIPESTATUS[0]}", 3),
        ("trap 'echo bye' EXIT; FAIL | tee /dev/null", 0),
        ("FAIL | (exit 4)", 4),
    ],
)
def test_a_line_that_decides_by_itself_does(line: str, code: int) -> None:
    assert run(line) == (code, "")


def test_a_line_without_a_pipeline_stays_as_it_is() -> None:
    for line in ("python train.py", "a || b", "grep 'a|b' c", 'echo "x|y"', "echo a \\| b", "echo a >| b"):
        assert watch_pipelines(line) == line
