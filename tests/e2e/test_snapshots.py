"""Tests snapshots of running jobs, and checkpoints from which they resume, on real HDFS and YARN."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, eventually
from planned_environment import planned_python

from howdah.outputs import snapshot
from howdah.sandbox import Sandbox
from howdah.spec import uris

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "digits-resume"

# Writes a model twice a second until it is told to end, and says when it wants a snapshot.
WRITER = """
import os, sys, time, zipfile
os.makedirs("output/sub", exist_ok=True)
for name in ("fixed.txt", "at:1", "at%3A1"):
    open("output/sub/" + name, "w").write(name)
for step in range(4000):
    with zipfile.ZipFile("output/model.pt.tmp", "w") as file:
        file.writestr("step", str(step))
    os.replace("output/model.pt.tmp", "output/model.pt")
    if step == 0:
        print("reporter save", file=sys.stderr, flush=True)
    if os.path.exists("/tmp/" + os.environ["HOWDAH_JOB_ID"] + ".end"):
        break
    time.sleep(0.25)
"""


@pytest.fixture
def howdah(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def end(job: str) -> Path:
    """Tell WRITER's tasks to end."""
    path = Path(f"/tmp/{job}.end")
    path.touch()
    return path


def saves(howdah: CommandLine, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = howdah.status(job)["saves"]
    return found


def test_copies_by_the_program_by_command_and_by_interval_in_xlearnings_place(howdah: CommandLine) -> None:
    path = f"{howdah.root}/tmp/saves-{os.getpid()}"
    output = {"path": path, "save": {"every": "3s", "to": f"{path}/interResult_", "keep": 2, "incremental": True}}
    running = howdah.run([sys.executable, "-c", WRITER], replicas=2, outputs=[output])
    job = running.job
    running.says("is complete")
    asked = howdah("save", job, "--wait", "--json")
    assert asked.code == 0, asked.text
    taken = json.loads(asked.out)
    assert (taken["done"], taken["tasks"], taken["state"]) == (2, 2, "SUCCEEDED")
    unchanged = ("fixed.txt", "at:1", "at%3A1")  # HDFS takes no colon in a name
    for task in ("worker-0", "worker-1"):
        found = snapshot.part_files(howdah.files, f"{taken['uri']}/{task}")
        assert set(found) == {"model.pt", *(f"sub/{name}" for name in unchanged)}
        assert all(howdah.files.read_bytes(found[f"sub/{name}"]) == name.encode() for name in unchanged)
    assert taken["files"] < taken["total"] == 8, "what had not changed was not copied again"
    eventually(lambda: any(each["by"] == "interval" for each in saves(howdah, job)), "a snapshot by interval")
    assert any(each["by"].startswith("worker:") for each in saves(howdah, job))
    eventually(lambda: sum(each["removed"] for each in saves(howdah, job)) > 0, "an old snapshot that is removed")
    text = howdah("status", job).text
    assert "snapshot: hdfs://" in text
    flag = end(job)
    done = running.done()
    flag.unlink()
    assert done.code == 0, done.text
    there = {uris.name(entry.uri) for entry in howdah.files.children(path)}
    snapshots = {name for name in there if name.startswith("interResult_")}
    assert there == {"_SUCCESS", "worker-0", "worker-1", *snapshots}, "snapshots and output are in one place"
    whole = [name for name in snapshots if snapshot.parts(howdah.files, f"{path}/{name}")]
    assert len(whole) == 2
    assert howdah.left(job) == []


def test_a_copy_cut_by_the_jobs_end_leaves_nothing(howdah: CommandLine) -> None:
    path = f"{howdah.root}/tmp/cut-{os.getpid()}"
    held = "file = open('output/held.pt', 'wb'); file.write(b'PK\\3\\4'); file.flush(); print('held', flush=True)"
    source = f"import os, time; os.makedirs('output'); {held}; time.sleep(600)"
    running = howdah.run([sys.executable, "-c", source], outputs=[{"path": path}])
    job = running.job
    running.says("held")
    refused = howdah("save", job, "--output", "3")
    assert (refused.code, "no directory to copy for outputs.3" in refused.text) == (66, True), refused.text
    assert howdah("save", job).code == 0
    eventually(lambda: saves(howdah, job), "a snapshot that is being made")
    howdah("cancel", job)  # at once: half a minute is waited for the file to be whole
    running.done()
    view = howdah.status(job)
    assert [(each["state"], "the job ended" in each["reason"]) for each in view["saves"]] == [("FAILED", True)]
    beside = [entry.uri for entry in howdah.files.children(f"{howdah.root}/tmp") if "cut-" in entry.uri]
    assert beside == []
    over = howdah("save", job)
    assert (over.code, "has ended" in over.text) == (66, True)


@pytest.mark.timeout(900)
def test_a_training_that_is_killed_goes_on_from_the_newest_whole_checkpoint(
    howdah: CommandLine, sandbox: Sandbox, tmp_path: Path
) -> None:
    """The example on a cluster: both ranks fail after epoch 2; beside a whole checkpoint lies half a newer one."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "howdah" / "environments"
    home = Path(os.environ["HOWDAH_HOME"]) / "cache"
    home.mkdir(parents=True, exist_ok=True)
    if cached.exists() and not (home / "environments").exists():
        (home / "environments").symlink_to(cached)
    root, mark = howdah.root, os.getpid()
    checkpoints, model = f"{root}/tmp/ck-{mark}", f"{root}/tmp/model-{mark}"
    howdah.files.mkdirs(checkpoints)
    howdah.files.write_bytes(f"{checkpoints}/epoch-9.pt", b"PK\3\4 half a file")
    sets = {"DIGITS_CHECKPOINTS": checkpoints, "DIGITS_MODEL": model, "FAIL_AFTER": "2"}
    arguments = [f"--set={name}={value}" for name, value in sets.items()]
    job = str(EXAMPLE / "job.yaml")
    plan = "plan", "--on", "yarn", *arguments, job
    howdah.start(*plan, HOWDAH_SHARED_PATHS="/").done(600)  # makes the environment, if need be
    first = howdah.start("run", "--on", "yarn", *arguments, job, HOWDAH_SHARED_PATHS="/")
    assert first.job
    second = howdah("run", "--on", "yarn", *arguments, job, HOWDAH_SHARED_PATHS="/")
    assert (second.code, "two jobs would overwrite each other's checkpoints" in second.text) == (66, True), second.text
    done = first.done(240)
    assert done.code == 0, done.text
    assert "skipped checkpoint: epoch-9.pt: it is cut" in done.text
    assert "no checkpoint yet: the programs start from the beginning" in done.text
    assert f"going on from {checkpoints}/epoch-2.pt" in done.text
    assert "goes on after epoch 2" in done.text
    status = howdah.status(done.job)
    assert status["resumed"] == f"{checkpoints}/epoch-2.pt"
    there = {uris.name(entry.uri) for entry in howdah.files.children(checkpoints)}
    assert there >= {"epoch-1.pt", "epoch-2.pt", "epoch-10.pt"}
    assert ".howdah-lease" not in there
    howdah.files.get(f"{model}/model.pt", tmp_path / "model.pt")
    python = planned_python(howdah("plan", "--on", "local", "--json", *arguments, job).out)
    checked = subprocess.run(
        [python, EXAMPLE.with_name("digits-pytorch") / "check.py", tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
