"""Tests that a failed part of a pipeline is not hidden by the command that reads it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from howdah.executor.process.image_program import ImageProgram
from howdah.executor.process.pipelines import watch_pipelines, watch_words
from howdah.frameworks import command_of, find
from howdah.spec.task import TaskId
from howdah.wire.messages import ImageOrder


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
        "set -e; cd /; FAIL --early-exit | tee log",
        "N=$(nproc); FAIL | tee log$(true)",
        "N=`nproc`; FAIL | tee log # a note | or two",
        "FAIL | stdbuf -oL tee log",
        "(FAIL 2>&1 | tee log)",
        "[ -d / ] || mkdir out; FAIL | tee log",
        "mkdir -p / || true\nFAIL | tee ${N}log;",
    ],
)
def test_a_part_that_fails_is_the_status_of_the_task(line: str) -> None:
    code, said = run(line.replace("log", "/dev/null"))
    assert code == 3
    assert "[howdah: a part of the pipeline ended with exit code 3, and so does the task" in said


@pytest.mark.parametrize(
    "line",
    [
        "FAIL | head",
        "FAIL 2>&1 | awk 1",
        "FAIL | python3 -c 1",
        "FAIL | tee /dev/null || true",
        "if FAIL | cat; then :; fi",
        "true || { cd /; }; false || { FAIL | tee /dev/null; }",
        "true && FAIL | cat || true",
        "FAIL | tee /dev/null ||\n  true",
        "FAIL | tee /dev/null || true\n\t",
        "while FAIL | cat; do break; done",
    ],
)
def test_elsewhere_it_is_told_at_most(line: str) -> None:
    code, said = run(line)
    assert code == 0
    assert said in (
        "",
        "[howdah: a part of the pipeline ended with exit code 3, and the task with that of its last command]\n",
    )


@pytest.mark.parametrize(
    "line",
    [
        "seq 1000000 | head -1",
        "seq 1000000 | (read first; echo $first)",
        "echo a | cat | tee /dev/null",
        "false | cat; true",
        "echo a || echo b",
        "grep -E 'a|b' /dev/null || true",
        "echo a | tee /dev/null\nif [ -f /nowhere ]; then echo; fi",
        "echo a | cat; ! grep -q x /dev/null",
        "i=0; echo a | cat; while [ $i -lt 2 ]; do i=$((i+1)); done",
        "if [[ b =~ ^(a|c)$ ]]; then echo; fi",
        "case 1 in 0|2) if [ -n '' ]; then echo; fi ;; *) if [ -n '' ]; then echo; fi ;; esac",
        "A=$(echo a | cat); if [ -f /nowhere ]; then echo; fi",
        "cat << X\na | b\nX\nif false; then echo; fi",
        "# a | tee\nif false; then echo; fi",
        "while read l; do :; done < <(echo a | cat)",
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


@pytest.mark.parametrize(
    "line",
    [
        "bash -c 'cd /; false | tee /dev/null'",
        'exec /bin/bash -ec "false | cat"',
        "bash -lc 'false | cat' ",
        "env A=1 bash -c 'false | cat'",
        "A=1 B=2 bash -c 'false | cat'",
    ],
)
def test_a_line_for_another_bash_is_watched(line: str) -> None:
    code, said = run(line)
    assert code == 1
    assert "[howdah: a part of the pipeline ended with exit code 1, and so does the task" in said


def test_words_for_bash_are_watched_too() -> None:
    assert watch_words(("/bin/bash", "-c", "a | tee b")) == ("/bin/bash", "-c", watch_pipelines("a | tee b"))
    for words in (("sh", "-c", "a | tee b"), ("bash", "run.sh", "a | tee b"), ("bash", "-c", "a | b", "c"), ("a", "b")):
        assert watch_words(words) == words


@pytest.mark.parametrize("framework", ["mpi", "ray"])
def test_a_line_behind_a_frameworks_own_launcher_is_watched_too(framework: str) -> None:
    words = command_of(find(framework), TaskId("worker", 0), "a | tee b")
    assert watch_words(tuple(words)) == (*words[:-1], watch_pipelines("a | tee b"))
    other = command_of(find(framework), TaskId("worker", 0), ("grep", "-c", "a | tee b"))
    assert watch_words(tuple(other)) == other


def test_words_for_the_bash_of_an_image_are_watched_too(tmp_path: Path) -> None:
    run = ImageProgram(ImageOrder("image"), "/bin/podman", ("image",), str(tmp_path), str(tmp_path), "n", "c")
    run.prepare(("bash", "-c", "a | tee b"), {}, (), 0, (), 10.0)
    os.close(run.files[0])
    assert run.argv[-3:] == ["bash", "-c", watch_pipelines("a | tee b")]


def test_a_line_without_a_pipeline_stays_as_it_is() -> None:
    for line in (
        "python train.py",
        "a || b",
        "grep 'a|b' c",
        'echo "x|y"',
        "echo a \\| b",
        "echo a >| b",
        "bash -c 'a'",
        "(a)",
    ):
        assert watch_pipelines(line) == line
