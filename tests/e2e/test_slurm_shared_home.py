"""Tests that the nodes of a Slurm need nothing of the submitting machine but the home, with this repository, its Python
and the user's files out of their sight."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.sandbox import SlurmSandbox
from howdah.sandbox.slurm_conf import SlurmShape

HOWDAH = str(Path(sys.executable).with_name("howdah"))
REPOSITORY, PYTHON = Path(__file__).parents[2], "/usr/bin/python3"
HIDDEN = [path for path in (str(REPOSITORY), "/root", "/home", "/opt", "/srv") if Path(path).is_dir()]


FUNCTION = f"""
import os, sys
import helper
import howdah
from howdah import here

base = 21

def score():
    seen = [path for path in {HIDDEN} if os.listdir(path)]
    return base + helper.double(here.rank), sys.executable, seen

if __name__ == "__main__":
    python = {{"python": "{PYTHON}"}}
    print("got", howdah.run_all(score, on="slurm", replicas=2, memory="256MiB", environment=python))
"""


def version_of(python: str) -> tuple[int, ...]:
    line = "import sys; print(*sys.version_info[:2])"
    return tuple(map(int, subprocess.check_output([python, "-c", line], text=True, timeout=60).split()))


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root, and unshare"),
    pytest.mark.skipif(
        not Path(PYTHON).exists() or version_of(PYTHON) < (3, 10), reason=f"needs a Python 3.10 at {PYTHON}"
    ),
]


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def hidden(slurm_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Start a Slurm of one node that sees nothing of HIDDEN; return the log of its slurmd."""
    monkeypatch.setenv("HOWDAH_PYTHON", PYTHON)
    with SlurmSandbox(tmp_path / "slurm", SlurmShape(nodes=1, gpus=0)) as box:
        monkeypatch.setenv("SLURM_CONF", box.env()["SLURM_CONF"])
        box.stop("n1")
        hide = "".join(f"mount -t tmpfs none {shlex.quote(path)} && " for path in HIDDEN)
        daemon = f"slurmd -D -N n1 -f {box.run_dir}/slurm.conf"
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        variables = {**box.env(), "PATH": path, "HOWDAH_SANDBOX": f"{box.run_dir}/n1"}
        line = ["unshare", "--mount", "--propagation=private", "/bin/sh", "-c", f"cd / && {hide}exec {daemon}"]
        log = tmp_path / "slurmd.log"
        with (
            log.open("w") as file,
            subprocess.Popen(line, env=variables, stdout=file, stderr=file, start_new_session=True) as slurmd,
        ):
            try:
                yield log
            finally:
                slurmd.terminate()


def test_a_job_on_nodes_that_share_the_home_alone(hidden: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("brought along\n")
    command = f"[ -z \"$(ls -A {' '.join(HIDDEN)} | grep -v ':$')\" ] && cat note.txt"
    options = ["--on", "slurm", "--replicas", "2", "--file", "note.txt"]
    done = run(tmp_path, HOWDAH, "run", *options, "--", "/bin/sh", "-c", command)
    assert done.returncode == 0, (done, hidden.read_text())
    assert "brought along" in done.stdout, done  # it follows the first task


@pytest.mark.skipif(sys.version_info[:2] != version_of(PYTHON), reason="a function needs the same Python there")
def test_a_function_on_nodes_that_share_the_home_alone(hidden: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def double(number):\n    return 2 * number\n")
    (tmp_path / "program.py").write_text(FUNCTION)
    done = run(tmp_path, sys.executable, "program.py")
    assert done.returncode == 0, (done, hidden.read_text())
    assert done.stdout == f"got {[(21, PYTHON, []), (23, PYTHON, [])]}\n"


def run(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240)
