"""Tests inputs on a real cluster: split, listed, cached on the node, changed, interrupted, read in place."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import HOWDAH, LIMIT_S, CommandLine

from howdah.inputs.download import download_verified, verify_unchanged
from howdah.inputs.node_cache import MAX_DISK_USE
from howdah.inputs.transfer import download
from howdah.sandbox import Sandbox
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.spec import uris
from howdah.storage.filesystem import ConnectionBroken
from howdah.wire.helper_messages import FileCopy

ROOT = Path(__file__).parents[2]
SHOW = "find data -type f | sort | xargs sha256sum; find data -type f | xargs stat -c '%h links' | sort -u"

pytestmark = pytest.mark.timeout(900)  # where environments are made first


@pytest.fixture
def yarn(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        line = CommandLine(sandbox, tmp_path)
        yield line
        line.end_all()


@pytest.fixture
def directory(yarn: CommandLine, tmp_path: Path) -> str:
    """A directory of its own on HDFS."""
    uri = f"{yarn.root}/inputs/{tmp_path.name}"
    yarn.files.mkdirs(uri)
    return uri


def room_to_keep(place: Path) -> bool:
    """Whether a node keeps inputs there: on a disk that is nearly full it does not."""
    disk = shutil.disk_usage(place)
    return disk.used + (6 << 20) < MAX_DISK_USE * disk.total


def can_link(place: Path, there: Path) -> bool:
    """Whether a file can have a name in both: on two disks it is copied, and for root, who could write to it."""
    if os.geteuid() == 0:
        return False
    (place / "linked").touch()
    try:
        os.link(place / "linked", there / f"linked-{place.name}")
    except OSError:
        return False
    return True


def quiet(files: int, size: int) -> None:
    pass


def test_dealt_by_bytes_and_listed_and_kept(yarn: CommandLine, directory: str) -> None:
    """One job by every strategy that gives files; a second one finds what the node kept of them."""
    sizes = {"a": 3 << 20, "sub/b": 1 << 20, "c": 1 << 20, "d": 1 << 20}
    for name, size in sizes.items():
        yarn.files.mkdirs(uris.parent(uris.join(directory, name)))
        yarn.files.write_bytes(f"{directory}/{name}", name[-1:].encode() * size)
    wanted = {name: hashlib.sha256(name[-1:].encode() * size).hexdigest() for name, size in sizes.items()}
    # All nodes of the sandbox are this machine, but each keeps files of its own: here they share a place.
    place = {"HOWDAH_DATA_CACHE_DIR": str(yarn.directory)}
    keeps, links = room_to_keep(yarn.directory), can_link(yarn.directory, yarn.sandbox.run_dir)
    inputs = [
        {"path": directory, "to": "data", "share": "bytes", "cache": True},
        {"path": f"{directory}/*#uris", "strategy": "placeholder", "chief": 1},
    ]
    command = f'{SHOW}; cat "$INPUT_FILE_LIST_FILE"; test "$INPUT_FILE_LIST" = "$(cat inputFileList.txt)" && echo same'
    job = yarn.job_file(command, inputs=inputs, replicas=2)
    for turn in (1, 2):
        done = yarn.start("run", "--on", "yarn", "--logs", "all", job, **place).done()
        assert done.code == 0, done.text
        lines = {n: re.findall(rf"^worker:{n} \| (.*)$", done.text, re.MULTILINE) for n in (0, 1)}
        assert [dict(reversed(line.split("  ")) for line in lines[n] if line.count("  ") == 1) for n in (0, 1)] == [
            {f"data/{name}": wanted[name] for name in part} for part in (["a"], ["c", "d", "sub/b"])
        ]
        # More than two while YARN has not removed the first job's directory yet.
        assert re.search(r"\b[2-9] links" if keeps and links else r"\b1 links", done.text)
        listed = [json.loads(next(line for line in lines[n] if line.startswith("{"))) for n in (0, 1)]
        assert listed == [
            {"uris": [f"{directory}/a"]},
            {"uris": [f"{directory}/c", f"{directory}/d", f"{directory}/sub/b"]},
        ]
        assert done.text.count("| same") == 2
        kept = re.findall(r"MiB in [\d.]+ s(?:, (\S+) MiB of them kept on the node)?$", done.text, re.MULTILINE)
        assert kept == (["", ""] if turn == 1 or not keeps else ["3.0", "3.0"])


def test_more_tasks_than_files_and_what_is_missing_is_told_before(yarn: CommandLine, directory: str) -> None:
    yarn.files.write_bytes(f"{directory}/one", b"1")
    path = yarn.job_file(
        "true", replicas=3, inputs=[{"path": directory}, {"path": f"{directory}/none"}, {"path": "hdfs:///no*"}]
    )
    done = yarn("run", "--on", "yarn", path)
    assert done.code == 66, done.text
    told = done.err.decode()
    assert "inputs.0.share: has fewer files (1) than tasks (3): worker:1 and 1 more would have none" in told
    assert f"inputs.1.path: '{directory}/none': no such file or directory" in told
    assert "inputs.2.path: 'hdfs:///no*': no such file or directory" in told
    assert "application_" not in done.text


def test_a_file_that_changes_after_it_was_listed_fails_in_one_line(yarn: CommandLine, directory: str) -> None:
    for name in ("changed", "deleted"):
        yarn.files.write_bytes(f"{directory}/{name}", b"12345")
    copies = {
        name: FileCopy(
            str(yarn.directory / name), f"{directory}/{name}", 5, yarn.files.stat(f"{directory}/{name}").modified_ms
        )  # type: ignore[union-attr]
        for name in ("changed", "deleted")
    }
    yarn.files.write_bytes(f"{directory}/changed", b"54321")
    yarn.files.delete(f"{directory}/deleted")
    for name, words in {
        "changed": "has changed since the job was submitted: it was written again",
        "deleted": "no such file: it was there when the job was submitted",
    }.items():
        with pytest.raises(Exception, match=re.escape(f"{directory}/{name}: {words}")):
            download([copies[name]], quiet)


def test_a_damaged_block_is_noticed(yarn: CommandLine, directory: str) -> None:
    content = os.urandom(1 << 20)
    yarn.files.write_bytes(f"{directory}/damaged", content)
    blocks = [path for path in yarn.sandbox.run_dir.glob("dfs/**/blk_*") if path.suffix != ".meta"]
    block = next(path for path in blocks if path.stat().st_size == len(content) and path.read_bytes() == content)
    with block.open("r+b") as file:
        file.seek(1000)
        file.write(b"damaged")
    with pytest.raises(ConnectionBroken, match="no copy of a block can be read"):
        download([FileCopy(str(yarn.directory / "x"), f"{directory}/damaged", len(content))], quiet, back_off_s=0.01)
    assert not (yarn.directory / "x").exists()


def test_a_download_goes_on_behind_what_came_when_the_datanode_comes_back(yarn: CommandLine, directory: str) -> None:
    pieces = [os.urandom(1 << 20)] * 200
    with yarn.files.writing(f"{directory}/large") as sink:
        for piece in pieces:
            sink.write(piece)
    restart = threading.Thread(target=_restart, args=(yarn.sandbox,))
    calls: list[list[int]] = []

    def slowly(count: int) -> None:
        calls[-1].append(count)
        if sum(calls[-1]) > 60 << 20 and not restart.ident:
            restart.start()
        if len(calls) == 1 and restart.ident:
            time.sleep(0.1)

    copy = FileCopy(str(yarn.directory / "large"), f"{directory}/large", 200 << 20)
    deadline = time.monotonic() + LIMIT_S
    try:
        while not Path(copy.path).exists():
            calls.append([])
            with contextlib.suppress(ConnectionBroken):
                download_verified(verify_unchanged(copy), copy.path, slowly)
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        if restart.ident:
            restart.join()
        yarn.sandbox.start("dn")  # where it was stopped only
    assert len(calls) > 1, "the connection did not break"
    assert all(call[0] > 60 << 20 for call in calls[1:])
    assert hashlib.sha256(Path(copy.path).read_bytes()).digest() == hashlib.sha256(b"".join(pieces)).digest()


def _restart(sandbox: Sandbox) -> None:
    sandbox.stop("dn", signal.SIGKILL)
    sandbox.start("dn")


def test_libhdfs_finds_hadoop_and_java(yarn: CommandLine, directory: str) -> None:
    """There is no libhdfs to be had here, but what it would be given lets Java's own client read."""
    known = HadoopRecord.load(yarn.sandbox.run_dir)
    assert known
    home = yarn.directory / "hadoop"
    (home / "lib/native").mkdir(parents=True)
    (home / "share/hadoop").mkdir(parents=True)
    (home / "share/hadoop/common").symlink_to(known.jars)
    (home / "lib/native/libhdfs.so").write_bytes(b"")
    yarn.files.write_bytes(f"{directory}/seen-by-java", b"")
    command = (
        "python3 -c \"import ctypes; ctypes.CDLL('libjvm.so'); print('jvm found')\" && "
        f'"$JAVA_HOME/bin/java" -cp "$CLASSPATH" org.apache.hadoop.fs.FsShell -ls {uris.path(directory)}'
    )
    env = {"HADOOP_HOME": str(home), "JAVA_HOME": known.java}
    done = yarn.run(command, env=env, memory="512MiB").done()
    assert done.code == 0, done.text
    assert "jvm found" in done.text
    assert f"{uris.path(directory)}/seen-by-java" in done.text


def test_the_example_that_reads_in_place(yarn: CommandLine, directory: str) -> None:
    yarn.files.mkdirs(f"{directory}/train")
    for part in (ROOT / "examples/data/digits/train").iterdir():
        yarn.files.put(part, f"{directory}/train/{part.name}")
    target = f"{directory}/model"
    # Its environment stays in the user's own cache.
    own = {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"}
    sets = ["--set", f"DIGITS_DATA={directory}", "--set", f"DIGITS_MODEL={target}"]
    done = subprocess.run(
        [HOWDAH, "run", "--on", "yarn", *sets, "examples/digits-fsspec/job.yaml"],
        env={**own, **yarn.sandbox.env(), "XDG_STATE_HOME": str(yarn.directory), "HOWDAH_SHARED_PATHS": "/"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"files, read in place from {directory}/train/part-0000" in done.stdout
    saved = sorted(uris.below(entry.uri, target) for entry in yarn.files.walk(target) if entry.size)
    assert saved == ["_SUCCESS", "worker-0/sums.npz", "worker-1/sums.npz"]


def test_what_a_failed_job_made_is_kept_aside_when_it_says_so(yarn: CommandLine, directory: str) -> None:
    both = f"touch {yarn.directory}/made-$HOWDAH_INDEX; until test -e {yarn.directory}/made-0; do sleep 0.1; done"
    fail = "test $HOWDAH_INDEX = 0 && sleep 60; exit 3"
    command = f"mkdir output; echo $HOWDAH_INDEX > output/made; {both}; {fail}"
    outputs = [{"path": f"{directory}/kept", "keep_failed": True}, {"path": f"{directory}/gone", "tasks": "worker:0"}]
    done = yarn.run(command, outputs=outputs, replicas=2).done()
    assert done.code == 1, done.text
    assert f"what the tasks made is kept in {directory}/kept.failed" in done.text
    assert sorted(uris.below(entry.uri, directory) for entry in yarn.files.walk(directory)) == [
        "kept.failed/_FAILED",
        "kept.failed/worker-0/made",
        "kept.failed/worker-1/made",
    ]
