"""Tests that a job which uses `hdfs://<name service>/` goes on when the other of two NameNodes takes over.

No ZooKeeper watches over them: a test says itself which one serves, as an administrator does.
"""

from __future__ import annotations

import getpass
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commandline import CommandLine, eventually

from howdah.sandbox import Sandbox
from howdah.spec import uris
from howdah.spec.event_lines import read_lines
from howdah.spec.events import Event, JobFinished, Started
from howdah.storage.content_cache import local_directory

JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME
MIB = 1 << 20
LIMITS = {"hdfs-site": {"ipc.client.rpc-timeout.ms": "6000"}}


@pytest.fixture(scope="module")
def howdah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    directory = tmp_path_factory.mktemp("hdfs-failover")
    with (
        pytest.MonkeyPatch.context() as environment,
        Sandbox(directory / "run", nodes=1, namenodes=2, datanodes=2, properties=LIMITS, cache=JARS) as sandbox,
    ):
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        yield CommandLine(sandbox, directory)


@pytest.fixture(autouse=True)
def both(howdah: CommandLine) -> Iterator[None]:
    """Both NameNodes run, one of them active; a test that fails leaves no job to disturb the others."""
    for name in ("nn1", "nn2"):
        howdah.sandbox.start(name)
    if not howdah.sandbox.active("NameNode"):
        howdah.sandbox.failover(title="NameNode")
    yield
    howdah.end_all()


def test_the_file_system_is_the_name_service(howdah: CommandLine) -> None:
    assert howdah.root == "hdfs://sandbox"
    howdah.files.write_bytes(f"{howdah.root}/tmp/before", b"1")
    other = howdah.sandbox.failover(title="NameNode")
    assert howdah.sandbox.active("NameNode") == other
    assert howdah.files.read_bytes(f"{howdah.root}/tmp/before") == b"1"
    howdah.files.append(f"{howdah.root}/tmp/before", b"2")
    assert howdah.files.read_bytes(f"{howdah.root}/tmp/before") == b"12"


def test_a_namenode_that_hangs_is_passed_over(howdah: CommandLine) -> None:
    """The first one asked, on standby, takes the call and never answers: the client's limit is a few seconds here."""
    if eventually(lambda: howdah.sandbox.active("NameNode"), "an active NameNode") == "nn1":
        howdah.sandbox.failover(title="NameNode")
    pid = next(daemon.pid for daemon in howdah.sandbox.status() if daemon.name == "nn1")
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        done = howdah("data", "ls", "/")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert done.code == 0, done.text
    assert f"{howdah.root}/tmp" in done.text


def test_a_transfer_goes_on_in_the_middle_of_a_file(howdah: CommandLine) -> None:
    uri, pieces = f"{howdah.root}/tmp/long", 40  # of 1 MiB: several blocks of 16
    with howdah.files.writing(uri) as sink, ThreadPoolExecutor(1) as pool:
        for number in range(pieces):
            if number == 7:
                sink.write(bytes([number]) * MIB)
                turned = pool.submit(howdah.sandbox.failover, signal.SIGKILL, "NameNode")
            else:
                sink.write(bytes([number]) * MIB)
                time.sleep(0.05)
        turned.result()
    assert howdah.files.read_bytes(uri) == b"".join(bytes([number]) * MIB for number in range(pieces))


def test_a_job_goes_on(howdah: CommandLine, tmp_path: Path) -> None:
    source, target = f"{howdah.root}/tmp/parts", f"{howdah.root}/tmp/copied"
    for number in range(4):
        howdah.files.mkdirs(source)
        howdah.files.write_bytes(uris.join(source, f"part-{number}"), b"%d\n" % number * 1000)
    program = f"touch {tmp_path}/$HOWDAH_INDEX; until [ -e {tmp_path}/go ]; do sleep 0.1; done; mkdir out; cp in/* out"
    data = {"inputs": [{"path": source, "to": "in"}], "outputs": [{"from": "out", "path": target}]}
    running = howdah.run(program, replicas=2, **data)
    eventually(lambda: all((tmp_path / str(index)).exists() for index in range(2)), "both programs run")
    howdah.sandbox.stop(eventually(lambda: howdah.sandbox.active("NameNode"), "an active NameNode"), signal.SIGKILL)
    time.sleep(2)
    (tmp_path / "go").touch()  # results are to be stored while there is no active NameNode
    time.sleep(2)
    howdah.sandbox.failover(title="NameNode")
    done = running.done()
    assert done.code == 0, done.text
    copied = [entry for entry in howdah.files.walk(target) if uris.name(entry.uri) != "_SUCCESS"]
    assert sorted(uris.name(entry.uri) for entry in copied) == [f"part-{number}" for number in range(4)]
    eventually(lambda: howdah.status(done.job)["state"] == "SUCCEEDED", "YARN hears of its end")
    log = f"{howdah.root}/user/{getpass.getuser()}/.howdah/jobs/{done.job}/events.jsonl"

    def events() -> list[Event]:
        return list(read_lines(howdah.files.read_bytes(log).decode().splitlines()))

    # A living master says that its job has succeeded before the log does.
    eventually(lambda: isinstance(events()[-1], JobFinished), "the end of its log")
    assert [event.attempt for event in events() if isinstance(event, Started)] == [1, 1]
