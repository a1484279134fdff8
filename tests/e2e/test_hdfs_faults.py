"""Tests a job while a real HDFS fails: one clear line in the client, right bytes or none, nothing left behind.

Every limit is short here: a server is given up after LIMIT_S, and a DataNode that says nothing is dead after 11 s.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hdfs_native
import pytest
from commandline import CommandLine, Done, Running, eventually

from howdah.errors import EngineUnavailable, StagingError
from howdah.hadoop.conf import load
from howdah.sandbox import Sandbox, readiness
from howdah.spec import uris
from howdah.spec.codec import encode
from howdah.spec.staged import Feed, Split
from howdah.storage.content_cache import local_directory
from howdah.storage.filesystem import ConnectionBroken

JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME
MIB = 1 << 20
LIMIT_S = 6
JOB_S = 360.0
"""Of several jobs at once, for four masters' room: two of them wait a minute for room in HDFS that does not come."""
SUCCEEDED, FAILED, STAGING, UNAVAILABLE = 0, 1, 66, 69
NAMES = ("a b", "what?", "no#1", "100%", "数据", "50%25")
HDFS = {
    "ipc.client.rpc-timeout.ms": str(LIMIT_S * 1000),
    "dfs.client.socket-timeout": str(LIMIT_S * 1000),
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "500",  # a silent DataNode is dead after twice this and ten heartbeats
}

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def howdah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    directory = tmp_path_factory.mktemp("hdfs-faults")
    properties = {"hdfs-site": HDFS}
    with (
        pytest.MonkeyPatch.context() as environment,
        Sandbox(directory / "run", nodes=1, datanodes=2, properties=properties, cache=JARS) as sandbox,
    ):
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        environment.setenv("HOWDAH_HOME", str(directory / "home"))
        yield CommandLine(sandbox, directory)


@pytest.fixture(autouse=True)
def tidy(howdah: CommandLine) -> Iterator[None]:
    """A test that fails leaves no job to disturb the others; both DataNodes run again, and the NameNode knows."""
    yield
    howdah.end_all()
    for name in ("dn1", "dn2"):
        howdah.sandbox.start(name)
    web = next(daemon.web for daemon in howdah.sandbox.status() if daemon.name == "nn")
    eventually(lambda: readiness.hdfs_is_writable(web, 2), "both DataNodes are back")


@pytest.fixture
def base(howdah: CommandLine) -> str:
    directory = f"{howdah.root}/tmp/{os.urandom(4).hex()}"
    howdah.files.mkdirs(directory, 0o777)
    return directory


def random_file(howdah: CommandLine, uri: str, mib: int) -> bytes:
    data = os.urandom(mib * MIB)
    howdah.files.write_bytes(uri, data)
    return data


@contextmanager
def frozen(howdah: CommandLine, *names: str) -> Iterator[None]:
    """These daemons take connections and never answer."""
    pids = [daemon.pid for daemon in howdah.sandbox.status() if daemon.name in names and daemon.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def one_line(done: Done) -> str:
    """The client's whole message."""
    lines = done.err.decode().splitlines()
    assert len(lines) == 1, done.text
    return lines[0]


# A DataNode ends


def test_a_datanode_that_dies_while_it_is_read_from(howdah: CommandLine, base: str) -> None:
    data = random_file(howdah, f"{base}/big", 20)
    # Which copy is read first is the NameNode's to say: of so many readers some had that one's.
    readers = [howdah.files.open_read(f"{base}/big") for _ in range(6)]
    begun = [reader.read(1000 * (number + 1)) for number, reader in enumerate(readers)]
    howdah.sandbox.stop("dn1", signal.SIGKILL)
    for reader, got in zip(readers, begun, strict=True):
        with reader:
            assert got + reader.read() == data


def test_a_datanode_that_dies_in_the_middle_of_a_stream(howdah: CommandLine, base: str) -> None:
    """More than the pipe and what is read ahead of it hold together, in blocks of which some are read from that one."""
    size, uri = 4 * MIB, f"{base}/lines"
    data = b"".join(b"%015d\n" % number for number in range(4 * MIB))
    client = hdfs_native.Client(howdah.root, load(str(howdah.sandbox.conf_dir)))
    with client.create(uris.path(uri), hdfs_native.WriteOptions(block_size=size)) as file:
        for at in range(0, len(data), size):
            file.write(data[at : at + size])
    both_hold(howdah, data[-size:])
    reader, writer = os.pipe()
    feed = Feed(0, (Split(uri, 0, len(data), size=len(data)),))
    request = {"feeds": encode([feed]), "to": writer, "task": "t:0", "host": "h", "directory": "/", "stall_s": 60}
    command = [sys.executable, "-m", "howdah.inputs.streaming.stdin_feeder"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, pass_fds=(writer,)) as helper, os.fdopen(reader, "rb") as pipe:
        os.close(writer)
        assert helper.stdin
        assert helper.stdout
        helper.stdin.write(json.dumps(request).encode())
        helper.stdin.close()
        begun = pipe.read(MIB)
        howdah.sandbox.stop("dn1", signal.SIGKILL)
        assert begun + pipe.read() == data
        assert json.loads(helper.stdout.read().splitlines()[-1])["ok"]


def test_a_datanode_that_is_dead_when_a_file_is_stored(howdah: CommandLine, base: str, tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(data := os.urandom(20 * MIB))
    howdah.files.append(f"{base}/log", b"1\n")
    howdah.files.append(f"{base}/log", b"2\n")
    howdah.sandbox.stop("dn1", signal.SIGKILL)
    howdah.files.put(tmp_path / "made", f"{base}/made")
    howdah.files.append(f"{base}/log", b"3\n")
    assert howdah.files.read_bytes(f"{base}/made") == data
    assert howdah.files.read_bytes(f"{base}/log") == b"1\n2\n3\n"
    assert sorted(uris.name(entry.uri) for entry in howdah.files.children(base)) == ["log", "made"]


def test_an_upload_that_is_cut_is_made_again(howdah: CommandLine, base: str, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "big").write_bytes(data := os.urandom(64 * MIB))
    request = json.dumps({"items": [{"path": str(tmp_path / "made"), "uri": f"{base}/up"}]})
    command = [sys.executable, "-m", "howdah.inputs.transfer", "upload"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as helper:
        assert helper.stdin
        assert helper.stdout
        helper.stdin.write(request)
        helper.stdin.close()
        eventually(lambda: howdah.files.exists(f"{base}/up") and [*howdah.files.walk(f"{base}/up")], "it has begun")
        for name in ("dn1", "dn2"):
            howdah.sandbox.stop(name, signal.SIGKILL)
        for name in ("dn1", "dn2"):
            howdah.sandbox.start(name)
        answer = json.loads(helper.stdout.read().splitlines()[-1])
    assert answer == {"ok": True, "files": 1, "bytes": len(data), "empty": [], "left_out": []}
    assert howdah.files.read_bytes(f"{base}/up/big") == data
    assert [uris.name(entry.uri) for entry in howdah.files.children(f"{base}/up")] == ["big"]


# A server does not answer


def test_a_namenode_that_hangs(howdah: CommandLine) -> None:
    with frozen(howdah, "nn"):
        done = howdah("data", "ls", "/tmp")
    assert done.code == UNAVAILABLE
    assert f"accepts calls and does not answer: waited {LIMIT_S} s (since " in one_line(done)
    assert done.seconds < 15 * LIMIT_S  # once, or twice; the rest is the machine's
    assert howdah("data", "ls", "/tmp").code == SUCCEEDED


def test_datanodes_that_hang(howdah: CommandLine, base: str, tmp_path: Path) -> None:
    random_file(howdah, f"{base}/big", 3)
    with frozen(howdah, "dn1", "dn2"):
        stuck = rf"/held: a DataNode has moved nothing for {LIMIT_S} s \(since \d\d:"
        with pytest.raises(ConnectionBroken, match=stuck), howdah.files.writing(f"{base}/held") as sink:
            sink.write(b"1")
        done = howdah("data", "get", f"{base}/big", str(tmp_path / "got"))
        assert not [*tmp_path.iterdir()]
    assert done.code == STAGING
    # On a slow machine they are taken for dead by now.
    stuck = f"a DataNode has moved nothing for {LIMIT_S} s (since "
    assert one_line(done).partition(f"{base}/big: ")[2].startswith((stuck, "no copy of a block can be read"))
    eventually(lambda: howdah("data", "get", f"{base}/big", str(tmp_path / "got")).code == SUCCEEDED, "they go on")


# Blocks and names


def copies(howdah: CommandLine, node: str, content: bytes) -> list[Path]:
    """A DataNode's, of the block that has this content."""
    directory = howdah.sandbox.run_dir / "dfs" / f"data-{node}"
    blocks = [path for path in directory.rglob("finalized/**/blk_*") if path.suffix != ".meta"]
    return [path for path in blocks if path.stat().st_size == len(content) and path.read_bytes() == content]


def both_hold(howdah: CommandLine, content: bytes) -> None:
    """For a new block the NameNode may take one DataNode, if it thinks that the other is busy, or away."""
    eventually(lambda: all(copies(howdah, node, content) for node in ("dn1", "dn2")), "two copies")


def flip(howdah: CommandLine, node: str, content: bytes) -> None:
    """Damage a DataNode's copy of the block that has this content."""
    found = copies(howdah, node, content)
    assert found, f"{node} has no copy"
    for path in found:
        with path.open("r+b") as block:
            block.seek(len(content) // 2)
            block.write(b"damaged")


def test_damaged_copies_of_a_block_are_skipped_or_reported(howdah: CommandLine, base: str, tmp_path: Path) -> None:
    data = random_file(howdah, f"{base}/x", 3)
    both_hold(howdah, data)
    flip(howdah, "dn1", data)
    assert all(howdah.files.read_bytes(f"{base}/x") == data for _ in range(4))
    flip(howdah, "dn2", data)
    done = howdah("data", "get", f"{base}/x", str(tmp_path / "got"))
    assert done.code == STAGING
    assert f"{base}/x: no copy of a block can be read (DataNodes: 127.0.0.1:" in one_line(done)
    assert f"`hdfs fsck {uris.path(base)}/x -files -blocks -locations` says which" in one_line(done)
    assert not [*tmp_path.iterdir()]


# Jobs


def play(howdah: CommandLine, jobs: dict[str, Callable[[], Done]]) -> dict[str, Done]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        started = {name: pool.submit(job) for name, job in jobs.items()}
        return {name: job.result() for name, job in started.items()}


def inputs(path: str) -> list[dict[str, str]]:
    return [{"path": path, "to": "in"}]


def outputs(path: str, **more: Any) -> list[dict[str, Any]]:
    return [{"from": "out", "path": path, **more}]


def python_that_waits(tmp_path: Path) -> str:
    """An interpreter for the master that begins when `begin` is there."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nuntil [ -e {tmp_path}/begin ]; do sleep 0.1; done; exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def ended(howdah: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Jobs that HDFS fails or not, all at the same time."""
    base, directory = f"{howdah.root}/tmp/jobs", tmp_path_factory.mktemp("jobs")
    fs = howdah.files
    for name in ("odd", "gone", "quota", "names", "shut"):
        fs.mkdirs(f"{base}/{name}", 0o777)
        fs.chmod(f"{base}/{name}", 0o777)
    for name in NAMES:
        fs.write_bytes(f"{base}/odd/{name}", name.encode())
    fs.write_bytes(f"{base}/secret", b"1", 0o600)
    fs.write_bytes(f"{base}/gone/f", b"1")
    fs.write_bytes(f"{base}/damaged", damaged := os.urandom(2 * MIB))
    both_hold(howdah, damaged)
    flip(howdah, "dn1", damaged)
    flip(howdah, "dn2", damaged)
    fs.chmod(f"{base}/shut", 0o700)
    howdah.dfsadmin("-setSpaceQuota", "40m", uris.path(f"{base}/quota"))
    howdah.dfsadmin("-setQuota", "5", uris.path(f"{base}/names"))

    def run(command: str, **job: Any) -> Done:
        return howdah.run(command, **job).done(JOB_S)

    def alice(**job: Any) -> Done:
        words = "run", "--on", "yarn", howdah.job_file("true", **job)
        return howdah.start(*words, HADOOP_USER_NAME="alice").done(JOB_S)

    def gone() -> Done:
        running = howdah.start(
            *("run", "--on", "yarn", howdah.job_file("true", inputs=inputs(f"{base}/gone"))),
            HOWDAH_PYTHON=python_that_waits(directory),
        )
        running.says("submitted application")
        fs.delete(f"{base}/gone/f")
        (directory / "begin").touch()
        return running.done(JOB_S)

    def runs(running: Running) -> bool:
        return "worker:0 runs" in running.text

    def two() -> Done:
        """The second of two jobs with one output."""
        go = directory / "go"
        hold = f"until [ -e {go} ]; do sleep 0.1; done; mkdir out; echo $HOWDAH_JOB_ID >out/id"
        both = [howdah.run(hold, outputs=outputs(f"{base}/both")) for _ in range(2)]
        for running in both:
            eventually(functools.partial(runs, running), "both run", JOB_S)
        go.touch()
        found = sorted((running.done(JOB_S) for running in both), key=lambda done: done.code)
        assert found[0].code == SUCCEEDED, found[0].text
        (written,) = [entry.uri for entry in fs.walk(f"{base}/both") if uris.name(entry.uri) == "id"]
        assert fs.read_bytes(written).decode().strip() == found[0].job
        return found[1]

    make = "mkdir out; head -c 30000000 /dev/zero >out/zeros"
    return play(
        howdah,
        {
            "two": two,  # first, as both need a master at the same time
            "unreadable": lambda: alice(inputs=inputs(f"{base}/secret")),
            "not writable": lambda: alice(outputs=outputs(f"{base}/shut/out")),
            "space": lambda: run(make, outputs=outputs(f"{base}/quota/out")),
            "names": lambda: run("mkdir out; touch out/1 out/2 out/3", outputs=outputs(f"{base}/names/out")),
            "odd": lambda: run("cp -r in out; ls in", inputs=inputs(f"{base}/odd"), outputs=outputs(f"{base}/odd out")),
            "damaged": lambda: run("true", inputs=inputs(f"{base}/damaged")),
            "gone": gone,
        },
    )


WORDS = {
    "unreadable": (FAILED, "/secret: permission denied: user alice may not read "),
    "not writable": (STAGING, "/shut/out: permission denied: user alice may not"),
    "space": (FAILED, "over the quota: The DiskSpace quota of /tmp/jobs/quota is exceeded"),
    "names": (FAILED, "over the quota: The NameSpace quota"),
    "damaged": (FAILED, "/damaged: no copy of a block can be read"),
    "gone": (FAILED, "/gone/f: no such file: it was there when the job was submitted"),
    "two": (FAILED, "/both: exists already, and was not there when the job was submitted"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_job_that_hdfs_fails(ended: dict[str, Done], name: str) -> None:
    code, words = WORDS[name]
    assert ended[name].code == code, ended[name].text
    assert words in ended[name].text


def test_names_of_every_kind_go_through_a_job(howdah: CommandLine, ended: dict[str, Done]) -> None:
    assert ended["odd"].code == SUCCEEDED, ended["odd"].text
    target = f"{howdah.root}/tmp/jobs/odd out"
    found = {uris.name(entry.uri): howdah.files.read_bytes(entry.uri) for entry in howdah.files.walk(target)}
    assert found.pop("_SUCCESS").startswith(b"published by howdah: ")
    assert found == {name: name.encode() for name in NAMES}


def test_safe_mode_is_told_before_anything_is_submitted(howdah: CommandLine, base: str) -> None:
    howdah.dfsadmin("-safemode", "enter")
    try:
        done = howdah("run", "--on", "yarn", howdah.job_file("true", outputs=outputs(f"{base}/out")))
        with pytest.raises(EngineUnavailable, match="safe mode"):
            howdah.files.mkdirs(f"{base}/x")
    finally:
        howdah.dfsadmin("-safemode", "leave")
    assert done.code == UNAVAILABLE, done.text
    assert "is in safe mode: it accepts no changes until" in one_line(done)
    assert not howdah.files.exists(f"{base}/out")


def test_a_file_that_another_client_writes_is_left_to_it(howdah: CommandLine, base: str) -> None:
    other = (
        "import hdfs_native, sys\n"
        f"out = hdfs_native.Client().create({uris.path(base)!r} + '/held')\n"
        "out.write(b'theirs'); out.hsync(); print('open', flush=True); sys.stdin.read(); out.close()"
    )
    with subprocess.Popen([sys.executable, "-c", other], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stdin
        writer.stdout.readline()
        with pytest.raises(StagingError, match="/held: is being written by another client"):
            howdah.files.append(f"{base}/held", b"ours")
        writer.stdin.close()
    assert howdah.files.read_bytes(f"{base}/held") == b"theirs"
