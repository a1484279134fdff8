"""Tests the engine `ssh` where hosts misbehave: the program `ssh` is a script that runs here what is for the host."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from howdah.client.submit import prepare
from howdah.engines import MasterContext
from howdah.engines.ssh import hosts
from howdah.engines.ssh.allocator import SshAllocator
from howdah.engines.ssh.hosts import SOURCE
from howdah.errors import EngineRejected
from howdah.spec import JobSpec, Outcome, Output, Resources, Role, State
from howdah.spec.events import Event, Noted
from howdah.spec.job import Board, Checkpoint, Save
from howdah.testing.allocator_contract import Driver, staged_job
from howdah.testing.launch_server import serve_launches

JOB = "ssh-job"
FAKE = """#!/bin/sh
if [ "$1" = -G ]; then
  if mkdir {base}/asked; then exec sleep 60; fi
  echo "hostname here"
  exit
fi
for command; do :; done
exec sh -c "$command"
"""

# A host that has another directory in the place of the job file's, with a link to what it shares.
OTHER = """#!/bin/sh
for command; do :; done
mv {base}/project {base}/away && mkdir {base}/project
ln -s {base}/saves {base}/project/saves
sh -c "$command"
rm -r {base}/project && mv {base}/away {base}/project
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let `ssh` lead to this machine; return the directory that the host keeps its containers in."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE.format(base=tmp_path))
    program.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "asked").mkdir()
    for name, value in {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "tmp"),
        "HOWDAH_HOME": str(tmp_path / "howdah"),
    }.items():
        monkeypatch.setenv(name, value)
    found = tmp_path / "tmp" / f"howdah-ssh-{os.getuid()}"
    found.mkdir(0o700)
    return found


def granted(base: Path) -> list[str]:
    """Wait until a container is granted; return what was noted before."""
    settings = {"ssh.hosts": "here/gpus=0", "ssh.home": str(base)}
    context = MasterContext(JOB, staged_job(base, settings=settings), base.as_uri(), "127.0.0.1", 1)

    async def play() -> list[str]:
        async with serve_launches(context) as served:
            allocator = await SshAllocator.open(served)
            driver = Driver(allocator)
            try:
                await driver.get("worker")
            finally:
                await allocator.unregister(Outcome(State.SUCCEEDED))
            return [event.text for event in driver.events if isinstance(event, Noted)]

    return asyncio.run(play())


def test_what_a_job_makes_is_where_all_hosts_see_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "project"
    base.mkdir()
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "there/gpus=0")
    monkeypatch.setenv("HOWDAH_SSH_HOME", str(tmp_path))
    role, outputs = Role("true", resources=Resources(1, 1)), (Output("model", save=Save(to="saved/")), Output("/tmp/m"))
    job = JobSpec({"worker": role}, outputs=outputs, checkpoint=Checkpoint("ck"), board=Board(path="runs"))
    prepare(job, base, {"engine": "ssh"}, lambda _: None)
    (tmp_path / "bin/ssh").write_text(OTHER.format(base=tmp_path))
    with pytest.raises(EngineRejected) as refused:
        prepare(job, base, {"engine": "ssh"}, lambda _: None)
    must = "must be in a directory that this machine and all hosts share and may write, or be on HDFS or S3"
    places = (
        "checkpoint.path: {}/ck",
        "board.path: {}/runs",
        "outputs.0.path: {}/model",
        "outputs.0.save.to: {}/saved",
    )
    told = (f"{place.format(base)} {must}; there: not the same directory as here" for place in places)
    assert str(refused.value) == "; ".join(told)


def test_snapshots_may_go_into_a_shared_directory_whose_parent_is_not(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "saves").mkdir()
    (tmp_path / "project/saves").symlink_to(tmp_path / "saves")
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "there/gpus=0")
    monkeypatch.setenv("HOWDAH_SSH_HOME", str(tmp_path))
    (tmp_path / "bin/ssh").write_text(OTHER.format(base=tmp_path))
    output = Output(str(tmp_path / "model"), save=Save(to="saves/"))
    job = JobSpec({"worker": Role("true", resources=Resources(1, 1))}, outputs=(output,))
    prepare(job, tmp_path / "project", {"engine": "ssh"}, lambda _: None)


def test_a_master_has_an_address_at_which_it_listens(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_SSH_HOSTS", "there/gpus=0")
    monkeypatch.setenv("HOWDAH_SSH_HOME", str(tmp_path))
    monkeypatch.setenv("SSH_CONNECTION", "fe80::1%eth0 50000 fe80::2%eth0 22")  # as sshd sets it
    job = JobSpec({"worker": Role("true", resources=Resources(1, 1))})
    with pytest.raises(EngineRejected, match="hosts see this machine at fe80::1%eth0, and masters listen at IPv4"):
        prepare(job, tmp_path, {"engine": "ssh"}, lambda _: None)
    monkeypatch.setenv("HOWDAH_SSH_ADDRESS", "head")
    assert prepare(job, tmp_path, {"engine": "ssh"}, lambda _: None).plan.request["master"] == "head"


def test_a_host_may_name_very_many_containers(root: Path, tmp_path: Path) -> None:
    for number in range(500):
        directory = root / JOB / f"{'left' * 50}-{number}"
        directory.mkdir(parents=True)
        (directory / "lock").touch()
    assert granted(tmp_path) == ["memory limits are not enforced"]


def test_a_container_that_starts_while_the_job_ends_is_removed(root: Path, tmp_path: Path) -> None:
    settings = {"ssh.hosts": "here/gpus=0", "ssh.home": str(tmp_path)}
    context = MasterContext(JOB, staged_job(tmp_path, settings=settings), tmp_path.as_uri(), "127.0.0.1", 1)

    async def play() -> list[Event]:
        async with serve_launches(context) as served:
            allocator = await SshAllocator.open(served)
            driver = Driver(allocator)
            await driver.get("worker")
            allocator.request("worker", 1)
            polling = asyncio.create_task(allocator.poll())
            await asyncio.sleep(0)  # the host has its order, and has not answered
            await allocator.unregister(Outcome(State.CANCELLED))
            return [*await polling, *await allocator.poll()]

    assert [event for event in asyncio.run(play()) if isinstance(event, Noted)] == []
    assert not (root / JOB).exists()


def test_a_host_whose_address_is_not_found_in_time_is_tried_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asked").rmdir()
    monkeypatch.setattr(hosts, "LIMIT_S", 1.0)
    assert granted(tmp_path)[1:] == [
        "host here is left out: ssh -G here: no answer within 1 s",
        "host here is back",
    ]


def talk(
    *orders: dict[str, Any], file_bytes: int = -1, known: Sequence[str] = (), archive: str = ""
) -> tuple[list[dict[str, Any]], str]:
    """Let the program on a host carry out orders; return what it prints, and the last line of its errors. Each file
    that it writes may have `file_bytes`."""
    greeting = {"job": JOB, "known": known, "archive": archive, "given": {"gpus": 0}}
    command = ["python3", "-I", "-c", f"import sys; exec(sys.stdin.buffer.read({len(SOURCE)}))"]
    lines = SOURCE + b"".join(json.dumps(each).encode() + b"\n" for each in (greeting, *orders))
    given = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, given[1]))
    try:
        # A container that lives keeps none of these pipes open.
        done = subprocess.run(command, input=lines, capture_output=True, timeout=30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, given)
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    return printed, (done.stderr.decode().splitlines() or [""])[-1]


START = {"start": "c1", "key": "00", "variables": {}, "sees": "", "gpus": 0, "vcores": 1, "memory_mib": 64}


def test_what_a_living_container_has_need_not_be_written_down_yet(root: Path) -> None:
    other = root / "ssh-other" / "c1"
    other.mkdir(parents=True)
    (other / "grant").touch()
    with (other / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        printed, problem = talk()
    assert ("room" in printed[0], problem) == (True, "")


def test_a_container_that_cannot_be_written_down_is_not_started(root: Path) -> None:
    """Nothing of it stays, and what runs there already goes on."""
    printed, problem = talk(START, file_bytes=20)
    assert (printed[1:], problem) == ([{"refused": "c1", "text": f"{root / JOB}: File too large"}], "")
    assert not (root / JOB / "c1").exists()


def test_a_container_writes_down_itself_which_processes_it_is(root: Path) -> None:
    """So it can be stopped if the program was killed right after its start."""
    printed, _ = talk({**START, "variables": {"PATH": os.environ["PATH"]}})
    assert [next(iter(each)) for each in printed[:2]] == ["room", "started"]
    directory = root / JOB / "c1"
    with (directory / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # its archive is empty: it ends at once
    assert int((directory / "pid").read_text()) > 1
    assert "pid" not in json.loads((directory / "grant").read_text())


def test_what_lives_is_too_old_for_nobody_who_cleans_the_disk(root: Path) -> None:
    """systemd-tmpfiles leaves directories alone that it cannot lock, with all that is in them."""
    (root / "end").touch()
    program = f"import os, time\nwhile os.path.exists({str(root / 'end')!r}): time.sleep(0.02)"
    talk(START, archive=base64.b64encode(program.encode()).decode())
    directory = os.open(root / JOB, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        (root / "end").unlink(missing_ok=True)
        os.close(directory)


def test_what_lives_is_not_removed(root: Path) -> None:
    """Nothing could stop it any more."""
    living = root / JOB / "c1"
    living.mkdir(parents=True)
    with (living / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        talk({"remove": JOB}, {"remove": f"{JOB}/c1"}, known=["c1"])
        assert living.exists()
    talk({"remove": f"{JOB}/c1"}, known=["c1"])
    assert not living.exists()
    talk({"remove": JOB})
    assert not (root / JOB).exists()
