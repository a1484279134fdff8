"""Tests cells of a real notebook kernel that run as jobs on this machine, or call functions in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook_kernel import Message, NotebookKernel, started, text_of

ADD = """%%howdah --replicas 2 --in numbers --out total,where
import helper
from howdah import here
print("rank", here.rank, "of", here.size)
total = helper.double(sum(numbers))
where = here.size
"""
FUNCTIONS = """import time
import helper
import howdah
from howdah import here

factor = 10

def scaled(number):
    return factor * number

def score(offset):
    return scaled(here.rank) + helper.double(offset)

def fails():
    raise ValueError("on purpose")

def waits():
    print("waits now", flush=True)
    time.sleep(600)
"""
KEYS = "on='local', memory='64MiB', vcores=1"


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[NotebookKernel]:
    (tmp_path / "helper.py").write_text("def double(number):\n    return 2 * number\n")
    variables = {**os.environ, "HOWDAH_HOME": str(tmp_path / "howdah")}
    variables.pop("HADOOP_CONF_DIR", None)
    with started(variables, tmp_path) as kernel:
        assert kernel.run("%load_ext howdah\nnumbers = list(range(10))").error == ""
        yield kernel


def test_a_cell_runs_as_a_job_with_variables_in_and_out(kernel: NotebookKernel, tmp_path: Path) -> None:
    done = kernel.run(ADD)
    assert done.error == "", done.traceback
    assert "worker:0 | rank 0 of 2" in done.printed
    assert any("worker:1" in text and "SUCCEEDED" in text for text in done.displayed), done.displayed
    assert "90 2" in kernel.run("print(total, where)").printed
    assert "cell" in kernel.run("%howdah list").printed
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".cell")] == []


def test_a_failed_cell_shows_its_own_line(kernel: NotebookKernel) -> None:
    done = kernel.run("%%howdah\nx = 1\nraise ValueError('on purpose')")
    assert done.error == "JobFailed"
    assert "worker:0" in done.traceback
    assert "line 3" in done.traceback
    assert "ValueError: on purpose" in done.traceback


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%howdah --in nothing\n1", "--in: there is no variable nothing"),
        ("%%howdah --replicas x\n1", "--replicas"),
        ("%%howdah --what\n1", "--what"),
    ],
)
def test_mistakes_are_one_line(kernel: NotebookKernel, cell: str, said: str) -> None:
    done = kernel.run(cell)
    assert done.error
    assert said in done.traceback
    assert len(done.traceback.splitlines()) == 1, done.traceback


@pytest.mark.parametrize("last", ["%%howdah\nimport time\nprint('waits now', flush=True)\ntime.sleep(600)", ""])
def test_an_interruption_cancels_the_job(last: str, kernel: NotebookKernel, tmp_path: Path) -> None:
    sent: list[bool] = []

    def interrupt(message: Message) -> None:
        if "worker:0 | waits now" in text_of(message) and not sent:
            sent.append(True)
            kernel.interrupt()

    cell = last or f"{FUNCTIONS}\nhowdah.run(waits, {KEYS})"
    assert kernel.run(cell, interrupt).error == "KeyboardInterrupt"
    assert "CANCELLED" in kernel.run("%howdah list").printed
    assert not results(tmp_path)


def test_a_cell_calls_a_function_in_a_job(kernel: NotebookKernel, tmp_path: Path) -> None:
    assert kernel.run(FUNCTIONS).error == ""
    done = kernel.run(f"howdah.run_all(score, 4, replicas=2, {KEYS})")
    assert done.error == "", done.traceback
    assert done.result == "[8, 18]"
    assert any("worker:1" in text and "SUCCEEDED" in text for text in done.displayed), done.displayed
    assert kernel.run(f"howdah.map(lambda each: each * factor, [3, 1, 2], replicas=2, {KEYS})").result == "[30, 10, 20]"
    assert not results(tmp_path)


def test_the_exception_of_a_function_shows_the_line_of_its_cell(kernel: NotebookKernel, tmp_path: Path) -> None:
    assert kernel.run(FUNCTIONS).error == ""
    done = kernel.run(f"howdah.run(fails, {KEYS})")
    assert done.error == "ValueError"
    assert "in worker:0 on 127.0.0.1:" in done.traceback
    assert '    raise ValueError("on purpose")' in done.traceback
    assert not results(tmp_path)


def results(base: Path) -> list[Path]:
    return [path for name in ("results", "cells") for path in base.glob(f"howdah/state/{name}/*")]
