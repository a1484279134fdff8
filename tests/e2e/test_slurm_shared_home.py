"""Tests that the nodes of a Slurm need nothing of the submitting machine but the home, with this repository, its Python
and the user's files out of their sight."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.sandbox import SlurmSandbox
from howdah.sandbox.slurm_conf import SlurmShape

HOWDAH = str(Path(sys.executable).with_name("howdah"))
REPOSITORY, PYTHON = Path(__file__).parents[2], "/usr/bin/python3"
HIDDEN = [path for path in (str(REPOSITORY), "/root", "/home", "/opt", "/srv") if Path(path).is_dir()]


def is_new_enough(python: str) -> bool:
    line = "import sys; raise SystemExit(sys.version_info < (3, 10))"
    return Path(python).exists() and subprocess.run([python, "-c", line], timeout=60).returncode == 0


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root, and unshare")
@pytest.mark.skipif(not is_new_enough(PYTHON), reason=f"needs a Python 3.10 at {PYTHON}")
def test_a_job_on_nodes_that_share_the_home_alone(
    slurm_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note.txt").write_text("brought along\n")
    monkeypatch.setenv("HOWDAH_PYTHON", PYTHON)
    with SlurmSandbox(tmp_path / "slurm", SlurmShape(nodes=1, gpus=0)) as box:
        monkeypatch.setenv("SLURM_CONF", box.env()["SLURM_CONF"])
        box.stop("n1")
        hide = "".join(f"mount -t tmpfs none {shlex.quote(path)} && " for path in HIDDEN)
        daemon = f"slurmd -D -N n1 -f {box.run_dir}/slurm.conf"
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        variables = {**box.env(), "PATH": path, "HOWDAH_SANDBOX": f"{box.run_dir}/n1"}
        line = ["unshare", "--mount", "--propagation=private", "/bin/sh", "-c", f"cd / && {hide}exec {daemon}"]
        with (
            (tmp_path / "slurmd.log").open("w") as log,
            subprocess.Popen(line, env=variables, stdout=log, stderr=log, start_new_session=True) as slurmd,
        ):
            try:
                command = f"[ -z \"$(ls -A {' '.join(HIDDEN)} | grep -v ':$')\" ] && cat note.txt"
                options = ["--on", "slurm", "--replicas", "2", "--file", "note.txt"]
                done = subprocess.run(
                    [HOWDAH, "run", *options, "--", "/bin/sh", "-c", command],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    timeout=240,
                )
            finally:
                slurmd.terminate()
    assert done.returncode == 0, (done, (tmp_path / "slurmd.log").read_text())
    assert "brought along" in done.stdout, done  # it follows the first task
