"""Tests snapshots and checkpoints when programs and masters die, on the local engine, by the command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from local_jobs import HOWDAH, eventually, run_command

HELD = "import os, time; os.makedirs('output'); held = open('output/m.pt', 'wb'); held.write(b'PK\\3\\4'); held.flush()"
# Writes a checkpoint a step, and half a newer one; dies in step 3 of the first epoch, in whichever way it is told.
STEPS = """
import os, signal, sys, zipfile
there = os.environ["HOWDAH_CHECKPOINT_DIR"]
done = 0
if "HOWDAH_RESUME_FROM" in os.environ:
    with zipfile.ZipFile(os.environ["HOWDAH_RESUME_FROM"]) as file:
        done = int(file.read("step"))
print("epoch", os.environ["HOWDAH_EPOCH"], "after", done, flush=True)
for step in range(done + 1, 6):
    path = os.path.join(there, f"step-{step}.pt")
    if step == 4 and os.environ["HOWDAH_EPOCH"] == "1":
        with open(path, "wb") as file:
            file.write(b"PK\\3\\4 half")
        os.kill(os.getpid(), signal.SIGKILL)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("step", str(step))
"""


class Machine:
    """The command line with a home of its own."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.directory, self.home = directory, home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOWDAH", "HADOOP"))}
        self.environment = {**kept, "HOWDAH_HOME": str(home), "HOWDAH_LANGUAGE": "en"}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command([HOWDAH, *arguments], env=self.environment, cwd=self.directory)

    def job(self, source: str, **job: Any) -> str:
        role = {"command": [sys.executable, "-c", source], "resources": {"memory": "128MiB"}}
        path = self.directory / f"job-{time.time_ns()}.yaml"
        path.write_text(json.dumps({"roles": {"worker": role}, "timeouts": {"stop": "1s"}, **job}))
        return str(path)

    def submit(self, source: str, **job: Any) -> str:
        done = self("submit", "--on", "local", self.job(source, **job))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def status(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json", job).stdout)
        return found

    def until_running(self, job: str) -> None:
        eventually(
            lambda: [task["state"] for task in self.status(job)["tasks"][:1]] == ["RUNNING"],
            "the task's start",
            output=lambda: self.status(job),
        )

    def master_of(self, job: str) -> int:
        return int(json.loads((self.home / "state/jobs" / job / "master.json").read_text())["pid"])


@pytest.fixture
def machine(tmp_path: Path, howdah_home: Path) -> Machine:
    return Machine(tmp_path, howdah_home)


def save_when_running(machine: Machine, job: str) -> None:
    machine.until_running(job)
    assert machine("save", job).returncode == 0
    eventually(lambda: machine.status(job)["saves"], "the snapshot's start", output=lambda: machine.status(job))


def test_a_killed_master_leaves_half_a_copy_and_a_lease_which_are_removed(machine: Machine) -> None:
    where = {"outputs": [{"path": "out", "optional": True}], "checkpoint": "ck", "master": {"attempts": 1}}
    many = "import os, time; os.makedirs('output'); [open(f'output/{n}.bin', 'w').write('x') for n in range(15000)]"
    job = machine.submit(f"{many}; print('written', flush=True); time.sleep(600)", **where)
    eventually(lambda: "written" in machine("logs", job).stdout, "the files", output=lambda: machine.status(job))
    master = machine.master_of(job)
    assert machine("save", job).returncode == 0
    eventually(lambda: any(machine.directory.glob("out.saved/.howdah-*/*/*/*.bin")), "the first file of the copy")
    os.kill(master, signal.SIGKILL)
    eventually(lambda: machine.status(job)["state"] == "FAILED", "the job's end", output=lambda: machine.status(job))
    assert [each for each in machine.directory.glob("out.saved/*") if not each.name.startswith(".")] == [], (
        "half a snapshot is hidden"
    )
    eventually(lambda: not (machine.directory / "out.saved").exists(), "the copy's removal")
    eventually(lambda: not list(machine.directory.glob(".howdah-*")), "removal of the unfinished outputs")
    eventually(lambda: not list((machine.directory / "ck").iterdir()), "removal of the lease")
    done = machine("run", "--on", "local", machine.job("pass", **where))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_job_with_the_same_checkpoints_is_refused_while_the_first_runs(machine: Machine) -> None:
    job = machine.submit("import time; time.sleep(600)", checkpoint="ck")
    refused = machine("submit", "--on", "local", machine.job("pass", checkpoint="ck"))
    assert (refused.returncode, f"ck is used by {job}" in refused.stderr) == (66, True), refused.stderr
    machine("cancel", job)
    assert machine("run", "--on", "local", machine.job("pass", checkpoint="ck")).returncode == 0


def test_a_program_that_dies_gives_up_the_copy_and_the_next_epoch_can_be_copied(machine: Machine) -> None:
    second = "os.makedirs('output'); open('output/whole.bin', 'w').write('x'); time.sleep(600)"
    source = f"import os, time\nif os.environ['HOWDAH_EPOCH'] == '1':\n    {HELD}; time.sleep(600)\n{second}"
    job = machine.submit(source, outputs=[{"path": "out"}], retries=1)
    save_when_running(machine, job)
    os.kill(machine.status(job)["tasks"][0]["pid"], signal.SIGKILL)
    eventually(lambda: machine.status(job)["epoch"] == 2, "the next epoch", output=lambda: machine.status(job))
    view = eventually(
        lambda: [each for each in machine.status(job)["saves"] if each["state"] == "FAILED"],
        "the end of the first copy",
        output=lambda: machine.status(job),
    )[0]
    assert "started again" in view["reason"]
    machine.until_running(job)
    asked = machine("save", job, "--wait", "--json")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    snapshot = json.loads(asked.stdout)
    assert snapshot["files"] >= 1
    machine("cancel", job)
    assert [path.name for path in (machine.directory / "out.saved").iterdir()] == [snapshot["uri"].rpartition("/")[2]]


@pytest.mark.parametrize("local", ["", "mirror"])
def test_a_killed_program_goes_on_from_the_newest_whole_checkpoint_and_so_does_the_next_job(
    machine: Machine, local: str
) -> None:
    checkpoint = {"path": "ck", "local": local, "every": "1s"} if local else "ck"
    job = machine.job(STEPS, checkpoint=checkpoint, retries=1)
    done = machine("run", "--on", "local", job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no checkpoint yet" in done.stdout
    assert "worker:0 | epoch 1 after 0" in done.stdout
    assert "worker:0 | epoch 2 after 3" in done.stdout
    assert ("skipped checkpoint: step-4.pt: it is cut" in done.stdout) == (not local), (
        "half a file is not stored at all"
    )
    again = machine("run", "--on", "local", job)
    assert "worker:0 | epoch 1 after 5" in again.stdout, again.stdout + again.stderr
    names = {path.name for path in (machine.directory / "ck").iterdir()}
    assert names == {f"step-{step}.pt" for step in range(1, 6)}


def test_checkpoints_that_cannot_be_read_fail_the_job(machine: Machine) -> None:
    (machine.directory / "ck").mkdir()
    with zipfile.ZipFile(machine.directory / "ck/a.pt", "w") as file:
        file.writestr("step", "1")
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            (machine.directory / "loop").symlink_to("loop")
        refused = machine("run", "--on", "local", machine.job(STEPS, checkpoint="loop/below"))
    else:
        (machine.directory / "ck").chmod(0)
        refused = machine("run", "--on", "local", machine.job(STEPS, checkpoint="ck"))
        (machine.directory / "ck").chmod(0o700)
    assert refused.returncode == 66, refused.stdout + refused.stderr
    place = "loop" if os.geteuid() == 0 else str(machine.directory / "ck")
    assert place in refused.stderr
