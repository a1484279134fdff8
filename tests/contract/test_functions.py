"""Tests Python functions as jobs of the local engine: results, exceptions, what travels, and what can't."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT_S = 120
Run = Callable[..., str]
PROGRAM = """
import os, signal, sys, threading, time
import helper
import howdah
from howdah import here

FACTOR, LOCK = 3, threading.Lock()
SMALL = {"on": "local", "memory": "64MiB", "vcores": 1}


class Odd(Exception):
    def __init__(self, one, two):  # can be written by pickle, and not be read
        super().__init__(one)


class Own(Exception):
    pass


def train(x, more=0):
    return helper.double(x) * FACTOR + here.rank + more


def note(item):
    with open(NOTES, "a") as file:
        file.write(f"{item} in {here.task}\\n")
    return 2 * item


def says_nan(x):
    if here.rank == 1:
        raise ValueError(f"loss is nan: {x}")
    here.barrier("never")


def odd():
    raise Odd("loss", 1)


def own():
    raise Own("of the program")


def killed():
    if here.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    here.barrier("never")


def leaves():
    sys.exit(0)


def ends():
    os._exit(0)


def only_there():
    import types

    sys.modules["onlythere"] = module = types.ModuleType("onlythere")
    exec("class Model: pass", module.__dict__)
    return module.Model()


def waits():
    open(NOTES, "w").close()
    time.sleep(600)


def interrupt():
    while not os.path.exists(NOTES):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


@howdah.distributed(replicas=2, **SMALL)
def decorated(one, *, two=2):
    return one * two * here.size if here.inside else one * two


class Trainer:
    @howdah.distributed(**SMALL)
    def train(self, number):
        return number + 1


def generator():
    return (number for number in range(3))


def locks():
    return LOCK


def refusal(function, *args, **keys):
    try:
        howdah.run(function, *args, **{**SMALL, **keys})
    except Exception as error:
        return error


NOTES = os.path.abspath("notes")
if __name__ == "__main__":
    {what}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the program, with this as its last line, and returns what it prints. Its results are
    private, and none stays but where it is `kept`."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    (tmp_path / "helper.py").write_text(
        "import threading\nLOCK = threading.Lock()\n\ndef double(x):\n    return 2 * x\n"
    )

    def call(what: str, code: int = 0, kept: bool = False) -> str:
        (tmp_path / "program.py").write_text(PROGRAM.replace("{what}", what))
        command = [sys.executable, "program.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        results = tmp_path / "home" / "state" / "results"
        if results.exists():
            assert results.stat().st_mode & 0o77 == 0
            assert bool(list(results.iterdir())) == kept
        assert kept or "/results/" not in done.stderr, "a place that is gone"
        return done.stdout + done.stderr

    return call


def test_results_come_back(run: Run) -> None:
    assert "got 31\n" in run("print('got', howdah.run(train, 5, 1, replicas=2, env={'FACE': '😀'}, **SMALL))")
    assert "got [30, 31]\n" in run("print('got', howdah.run_all(train, 5, replicas=2, **SMALL))")
    assert "got None\n" in run("print('got', howdah.run(leaves, **SMALL))")


def test_each_item_is_dealt_to_one_task(run: Run, tmp_path: Path) -> None:
    assert "got [0, 2, 4, 6, 8]\n" in run("print('got', howdah.map(note, range(5), replicas=2, **SMALL))")
    noted = sorted((tmp_path / "notes").read_text().splitlines())
    assert noted == [f"{number} in worker:{number % 2}" for number in range(5)]
    assert "got []\n" in run("print('got', howdah.map(note, [], **SMALL))")


def test_a_decorated_function_runs_here_and_there(run: Run) -> None:
    assert "got 6 30\n" in run("print('got', decorated(3), decorated.distributed(3, two=5))")
    assert "got 2 4\n" in run("print('got', Trainer().train(1), Trainer().train.distributed(3))")


def test_the_exception_of_the_first_failure_is_raised_here(run: Run) -> None:
    said = run("howdah.run(says_nan, 7, replicas=2, **SMALL)", 1)
    assert said.endswith("ValueError: loss is nan: 7\n")
    assert "RemoteTraceback: \nin worker:1 on 127.0.0.1:\nTraceback" in said
    there = said.rpartition("in worker:1 on")[2].partition("direct cause")[0]
    assert '/program.py", line ' in there
    assert '    raise ValueError(f"loss is nan: {x}")\n' in there
    assert "caught Own" in run("\n    try: howdah.run(own, **SMALL)\n    except Own: print('caught Own')")
    assert "Odd: loss" in run("howdah.run(odd, **SMALL)", 1).rpartition("JobFailed")[2]


def test_a_killed_task_is_told_and_not_its_neighbours_error(run: Run) -> None:
    said = run("howdah.run(killed, replicas=2, **SMALL)", 1)
    assert "worker:0 on 127.0.0.1: killed by SIGKILL (9)" in said.rpartition("JobFailed")[2]


def test_what_cannot_be_read_here_is_kept(run: Run) -> None:
    said = run("howdah.run(only_there, **SMALL)", 1, kept=True)
    assert "StagingError: what worker:0 returned can't be read here, and stays in file:///" in said


def test_a_program_that_ends_before_its_function_returned_nothing(run: Run) -> None:
    said = run("howdah.run_all(ends, **SMALL)", 1, kept=True)
    assert "JobFailed: worker:0 returned nothing: its program ended before the function did" in said


def test_an_interrupt_cancels_the_job(run: Run) -> None:
    said = run("threading.Thread(target=interrupt).start(); howdah.run(waits, **SMALL)", -signal.SIGINT)
    assert " is cancelled\n" in said
    assert said.endswith("KeyboardInterrupt\n")


def test_what_cannot_travel_is_named(run: Run) -> None:
    assert "its variable 'LOCK' is a _thread.lock" in run("print(refusal(locks))")
    assert "argument 1 is a _thread.lock" in run("print(refusal(train, LOCK))")
    assert "what the function returned (generator) cannot be sent back" in run("print(refusal(generator))")


def test_wrong_keys_are_named(run: Run) -> None:
    said = run("print(refusal(train, 1, replica=2), refusal(train, 1, memory='much'), refusal(train, 1, files='a.py'))")
    assert "replica: is not a key of a job file, or of its workers (did you mean 'replicas'?)" in said
    assert "roles.worker.resources.memory: " in said
    assert "files: is a text, must be a list" in said


def test_another_python_is_told(run: Run) -> None:
    said = run(
        "import howdah.program.run_function as module; sys.argv = ['', '.'];"
        " open('about.json', 'w').write('{\"python\": [3, 1], \"results\": \"all\"}'); module.main()",
        1,
    )
    assert "howdah: the function comes from Python 3.1, and this task has Python 3." in said


def test_the_current_directory_may_hold_python_itself(run: Run) -> None:
    """All of the standard library lies below `/`, which is the current directory of many a service."""
    assert "got 31\n" in run("os.chdir('/'); print('got', howdah.run(train, 5, 1, **SMALL))")


def test_the_python_that_the_environment_names_runs_the_function(run: Run, tmp_path: Path) -> None:
    """Beside it there may be no `python`, as in Debian's /usr/bin."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    keys = f"environment={{'python': {str(python)!r}}}, **SMALL"
    assert f"got {python}\n" in run(f"print('got', howdah.run(lambda: sys.executable, {keys}))")
