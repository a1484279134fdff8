"""Tests which variables of a cell's program come back into the notebook."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import StagingError
from howdah.jupyter.cell_magic import RESULT_FILE, bring_back, cell_program
from howdah.spec import uris
from howdah.wire.program_protocol import FUNCTION_RESULTS

CELL = """
import threading
weights = [1.0, 2.0]
model, optimizer = {"weights": weights}, {"of": weights}
lock = threading.Lock()
"""
OWN = """
import sys, types
sys.modules["own"] = own = types.ModuleType("own")
exec("class C: pass", own.__dict__)
c = own.C()
"""


def run(directory: Path, code: str, *names: str) -> str:
    """Run a cell's program; return the URI of what it has kept."""
    (directory / "cell.py").write_text(cell_program(code, "", names))
    subprocess.run([sys.executable, "cell.py"], cwd=directory, check=True, timeout=60)
    return uris.of_local(directory / FUNCTION_RESULTS)


def test_variables_come_back_with_what_they_share(tmp_path: Path) -> None:
    results, variables = run(tmp_path, CELL, "model", "optimizer"), dict[str, Any](other=1)
    bring_back(results, "", variables)
    assert variables == {"other": 1, "model": {"weights": [1.0, 2.0]}, "optimizer": {"of": [1.0, 2.0]}}
    assert variables["model"]["weights"] is variables["optimizer"]["of"]
    assert not (tmp_path / FUNCTION_RESULTS).exists()


def test_one_that_cannot_be_pickled_costs_no_other(tmp_path: Path) -> None:
    results, variables = run(tmp_path, CELL, "model", "lock", "none", "optimizer"), dict[str, Any]()
    told = r"--out: of 4 variables 2 came back, without none: there is no such variable; lock: TypeError: cannot pickle"
    with pytest.raises(StagingError, match=told):
        bring_back(results, "", variables)
    assert variables["model"]["weights"] is variables["optimizer"]["of"]
    assert variables.keys() == {"model", "optimizer"}


def test_what_cannot_be_read_here_stays(tmp_path: Path) -> None:
    results = run(tmp_path, OWN, "c")
    with pytest.raises(
        StagingError, match=rf"can't be read here, and stays in {results}/{RESULT_FILE}: ModuleNotFound"
    ):
        bring_back(results, "", {})
    assert (tmp_path / FUNCTION_RESULTS / RESULT_FILE).exists()


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from __future__ import annotations\nraise ValueError(x)", 3),
        ('"""Ein Käse."""\n# ä\nfrom __future__ import annotations; y = x  # ö\nraise ValueError(y)', 5),
        ("from __future__ import division\nfrom __future__ import (\n annotations,\n)\nraise ValueError(x)", 6),
        ("raise ValueError(x)", 2),
    ],
)
def test_variables_come_behind_the_imports_that_must_be_first(tmp_path: Path, code: str, line: int) -> None:
    (tmp_path / "given.pickle").write_bytes(pickle.dumps({"x": 17}))
    (tmp_path / "cell.py").write_text(cell_program(code, "given.pickle", ()), encoding="utf-8")
    done = subprocess.run([sys.executable, "cell.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert f"line {line}, in <module>" in done.stderr
    assert done.stderr.endswith("ValueError: 17\n")


def test_a_cell_that_is_no_program_stays_as_it_is() -> None:
    assert cell_program("x = (", "given.pickle", ()).splitlines()[1] == "x = ("
