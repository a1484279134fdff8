"""Tests the FileSystem, commits and helper processes on a real HDFS."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hdfs_native
import pytest
from commit_contract import CommitContract
from filesystem_contract import FileSystemContract, PermissionContract, write_together

from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.hadoop.conf import default_filesystem, home, load, to_xml
from howdah.master.owned_file import AppendedFile
from howdah.outputs.commit import OutputCommit, commit
from howdah.sandbox import Sandbox
from howdah.sandbox.hadoop import Launcher
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.install import Java
from howdah.spec import Input, JobSpec, Output, Role, StagedFile, uris
from howdah.staging.stage import stage
from howdah.storage.content_cache import Cache, location, sha256_of
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, Entry, FileSystem

Admin = Callable[..., None]


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("hdfs") / "run", nodes=0) as running:
        yield running


@pytest.fixture
def conf_dir(hadoop: Sandbox) -> str:
    return str(hadoop.conf_dir)


@pytest.fixture
def root(conf_dir: str) -> str:
    return default_filesystem(load(conf_dir))


@pytest.fixture
def fs(root: str, conf_dir: str) -> FileSystem:
    return filesystem(root, conf_dir)


@pytest.fixture
def base(fs: FileSystem, root: str) -> str:
    directory = uris.join(root, "test", os.urandom(4).hex())
    fs.mkdirs(directory)
    return directory


@pytest.fixture
def admin(hadoop: Sandbox) -> Admin:
    """Hadoop's own dfsadmin."""
    known = HadoopRecord.load(hadoop.run_dir)
    assert known is not None
    java = Java(Path(known.java), known.java_release)
    launcher = Launcher(hadoop.shape.hadoop, java, Path(known.jars), hadoop.run_dir)

    def run(*arguments: str) -> None:
        command = launcher.tool("org.apache.hadoop.hdfs.tools.DFSAdmin", arguments)
        subprocess.run(command, env=launcher.environment(), check=True, capture_output=True, timeout=240)

    return run


@pytest.fixture
def helper(conf_dir: str) -> Callable[[str, str, object], dict[str, object]]:
    """Run one of our modules as the master and the executor do; its last line."""

    def run(module: str, verb: str, request: object) -> dict[str, object]:
        command = [sys.executable, "-m", f"howdah.{module}", verb]
        environment = {**os.environ, "HADOOP_CONF_DIR": conf_dir}
        done = subprocess.run(
            command, input=json.dumps(request), env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.stderr == ""
        answer = json.loads(done.stdout.splitlines()[-1])
        assert done.returncode == (1 if "error" in answer else 0)
        return dict(answer)

    return run


class TestHdfs(FileSystemContract, PermissionContract, CommitContract):
    pass


class TestViewFs(FileSystemContract):
    """A directory of that HDFS, seen at another place."""

    @pytest.fixture
    def view(self, conf_dir: str, root: str, tmp_path_factory: pytest.TempPathFactory) -> str:
        """A configuration with a mount table."""
        directory = tmp_path_factory.mktemp("view")
        table = {"link./data/seen": f"{root}/test/view", "link./tmp": f"{root}/tmp"}
        rows = (
            f"<property><name>fs.viewfs.mounttable.all.{name}</name><value>{value}</value></property>"
            for name, value in table.items()
        )
        (directory / "core-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
        return str(directory)

    @pytest.fixture
    def fs(self, view: str) -> FileSystem:
        return filesystem("viewfs://all", view)

    @pytest.fixture
    def base(self, fs: FileSystem) -> str:
        directory = uris.join("viewfs://all/data/seen", os.urandom(4).hex())
        fs.mkdirs(directory)
        return directory

    def test_mounts_are_directories(self, fs: FileSystem, base: str) -> None:
        assert [entry.uri for entry in fs.children("viewfs://all/")] == ["viewfs://all/data", "viewfs://all/tmp"]
        assert [entry.uri for entry in fs.children("viewfs://all/data")] == ["viewfs://all/data/seen"]
        fs.write_bytes(f"{base}/f", b"1")
        assert f"{base}/f" in [entry.uri for entry in fs.walk("viewfs://all/data")]

    def test_what_is_not_mounted(self, fs: FileSystem, view: str) -> None:
        assert fs.stat("viewfs://all/other/x") is None
        with pytest.raises(StagingError, match="/other/x: nothing is mounted there; viewfs://all has /data/seen, /tmp"):
            fs.write_bytes("viewfs://all/other/x", b"1")
        with pytest.raises(SpecError, match=r"fs\.viewfs\.mounttable\.none: has no mounts"):
            filesystem("viewfs://none", view)


class TestReplacedOutputs:
    def commit(self, fs: FileSystem, base: str) -> str:
        """Replace what is at `<base>/model` by an output; return where that is now."""
        output = OutputCommit(uris.join(base, ".howdah-j-0"), uris.join(base, "model"), overwrite=True)
        fs.mkdirs(output.temporary)
        return commit(output, fs)

    def test_they_go_to_the_trash(
        self, fs: FileSystem, base: str, root: str, conf_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conf = {**load(conf_dir), "fs.trash.interval": "360"}
        (tmp_path / "core-site.xml").write_text(to_xml(conf))
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        found = []
        for number in range(2):
            fs.mkdirs(uris.join(base, "model"))
            fs.write_bytes(uris.join(base, f"model/{number}"), b"precious")
            found.append(self.commit(fs, base))
        trash = uris.join(home(conf, root), ".Trash/Current", uris.path(base), "model")
        assert found[0] == trash
        assert re.fullmatch(rf"{re.escape(trash)}\d+", found[1])
        for number, place in enumerate(found):
            assert fs.read_bytes(uris.join(place, str(number))) == b"precious"
        assert self.commit(fs, base).startswith(trash), "a job's own output"
        assert [uris.name(entry.uri) for entry in fs.children(base)] == ["model"]

    def test_a_trash_that_may_not_be_written_is_no_reason_to_fail(
        self, fs: FileSystem, base: str, root: str, conf_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conf = {**load(conf_dir), "fs.trash.interval": "360", "dfs.user.home.dir.prefix": f"{uris.path(base)}/file"}
        (tmp_path / "core-site.xml").write_text(to_xml(conf))
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        fs.write_bytes(uris.join(base, "file"), b"in the way of the home directories")
        fs.mkdirs(uris.join(base, "model"))
        fs.write_bytes(uris.join(base, "model/0"), b"precious")
        assert self.commit(fs, base) == f"{base}/model.replaced-j-0"
        assert fs.exists(uris.join(base, "model/_SUCCESS"))

    def test_without_a_trash_they_are_beside_the_output(self, fs: FileSystem, base: str) -> None:
        fs.mkdirs(uris.join(base, "model"))
        fs.write_bytes(uris.join(base, "model/0"), b"precious")
        assert self.commit(fs, base) == f"{base}/model.replaced-j-0"
        assert fs.read_bytes(f"{base}/model.replaced-j-0/0") == b"precious"
        assert self.commit(fs, base) == ""
        assert [uris.name(entry.uri) for entry in fs.children(base)] == ["model", "model.replaced-j-0"]

    def test_an_input_stays_under_another_name_of_the_namenode(
        self, fs: FileSystem, base: str, root: str, conf_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fs.mkdirs(uris.join(base, "data/train"))
        fs.write_bytes(uris.join(base, "data/train/a"), b"precious")
        _, authority, path = uris.split(base)
        host, _, port = authority.partition(":")
        other = {"localhost": "127.0.0.1"}.get(host, "localhost")
        for spelled in (f"hdfs://{other}:{port}{path}/data", f"hdfs://{path}/data/../data/train", f"{base}/data"):
            job = JobSpec(
                {"worker": Role("true")},
                inputs=(Input(f"{base}/data/train"),),
                outputs=(Output(spelled, overwrite=True),),
            )
            with pytest.raises(SpecError, match=r"outputs\.0\.path: would replace .*inputs\.0\.path"):
                stage(job, tmp_path, f"{root}/user/me/.howdah", conf_dir=conf_dir)


def test_another_user_is_told_whom_to_ask(
    fs: FileSystem, base: str, root: str, conf_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.mkdirs(uris.join(base, "private"), 0o700)
    fs.write_bytes(uris.join(base, "private/x"), b"1")
    owner = fs.children(base)[0].owner
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    alice = filesystem(root, conf_dir)
    with pytest.raises(StagingError, match=rf"user alice may not enter .*/private \(drwx------ {owner}:"):
        alice.read_bytes(uris.join(base, "private/x"))
    with pytest.raises(StagingError, match="user alice may not list"):
        alice.children(uris.join(base, "private"))
    with pytest.raises(StagingError, match="user alice may not write to"):
        alice.mkdirs(uris.join(base, "new"))


def test_quotas_are_named_and_nothing_is_left(fs: FileSystem, base: str, admin: Admin, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(24 << 20))
    admin("-setSpaceQuota", "20m", uris.path(base))
    with pytest.raises(StagingError, match=r"big: over the quota: The DiskSpace quota of .* is exceeded"):
        fs.put(tmp_path / "big", uris.join(base, "big"))
    assert fs.children(base) == []
    admin("-clrSpaceQuota", uris.path(base))
    admin("-setQuota", "2", uris.path(base))
    fs.create(uris.join(base, "one")).close()
    with pytest.raises(StagingError, match="over the quota: The NameSpace quota"):
        fs.mkdirs(uris.join(base, "two"))


def test_writes_fail_and_reads_work_in_safe_mode(fs: FileSystem, base: str, admin: Admin) -> None:
    admin("-safemode", "enter")
    try:
        with pytest.raises(EngineUnavailable, match="is in safe mode"):
            fs.mkdirs(uris.join(base, "x"))
        assert fs.children(base) == []
    finally:
        admin("-safemode", "leave")


def test_no_namenode_there_is_told(conf_dir: str) -> None:
    with pytest.raises(EngineUnavailable, match=r"hdfs://127\.0\.0\.1:1 does not answer: Connection refused"):
        filesystem("hdfs://127.0.0.1:1", conf_dir).stat("hdfs://127.0.0.1:1/x")


def test_an_unknown_name_service(conf_dir: str) -> None:
    with pytest.raises(EngineUnavailable, match=r"which NameNodes these are \(dfs\.ha\.namenodes"):
        filesystem("hdfs://nowhere", conf_dir).stat("hdfs://nowhere/x")


def test_a_client_survives_a_fork(fs: FileSystem, base: str) -> None:
    fs.write_bytes(uris.join(base, "f"), b"1")
    child = os.fork()
    if child == 0:
        os._exit(0 if fs.read_bytes(uris.join(base, "f")) == b"1" else 1)
    until = time.monotonic() + 120
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.02)
    if ended[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)


def test_a_listing_of_many(fs: FileSystem, base: str) -> None:
    names = [f"f{number:04}" for number in range(1100)]  # more than a NameNode lists at once
    for name in names:
        fs.create(uris.join(base, name)).close()
    assert sorted(uris.name(entry.uri) for entry in fs.walk(base)) == names


def poured(fs: FileSystem, entry: Entry, start: int = 0) -> bytes:
    came: list[bytes] = []
    fs.copy_to(entry, start, lambda pieces: came.extend(bytes(piece) for piece in pieces))
    return b"".join(came)


def test_small_files_are_known_by_their_directory(fs: FileSystem, base: str) -> None:
    wanted = {f"{base}/part {number:02d}#?é": os.urandom(number * 999) for number in range(30)}
    write_together(fs, wanted)
    fs.mkdirs(f"{base}/part 00a")
    known = fs.prefetch_stats(list(wanted))
    assert list(known) == sorted(wanted)
    assert fs.prefetch_stats(list(wanted)[:2]) == {}, "is worth no listing"
    for uri, entry in known.items():
        found = fs.stat(uri)
        assert found is not None
        assert (entry.size, entry.modified_ms, entry.mode) == (found.size, found.modified_ms, found.mode)
        assert poured(fs, entry) == wanted[uri]
        assert poured(fs, found, 777) == wanted[uri][777:]


def test_a_small_file_of_several_blocks(root: str, conf_dir: str, fs: FileSystem, base: str) -> None:
    content = os.urandom((1 << 20) + 5000)
    options = hdfs_native.WriteOptions(block_size=1 << 20)
    writer = hdfs_native.Client(root, load(conf_dir)).create(uris.path(f"{base}/two"), options)
    writer.write(content)
    writer.close()
    entry = fs.stat(f"{base}/two")
    assert entry is not None
    for start in (0, 1, 4096, 1 << 20, (1 << 20) + 4999, len(content)):
        assert poured(fs, entry, start) == content[start:]


def test_what_a_writer_has_flushed_can_be_read(root: str, conf_dir: str, fs: FileSystem, base: str) -> None:
    uri, written = f"{base}/open", b""
    writer = hdfs_native.Client(root, load(conf_dir)).create(
        uris.path(uri), hdfs_native.WriteOptions(block_size=1 << 20)
    )
    # Into the third block, by way of both ends.
    for length in (0, 700, 5, 1 << 19, (1 << 19) - 705, 1 << 20, 100_000, 7):
        writer.write(data := os.urandom(length))
        written += data
        writer.hsync()
        (listed,) = fs.children(base)
        assert listed.may_be_open
        (entry,) = fs.stat_flushed([listed])
        assert entry.size == len(written)
        assert b"".join(fs.iter_chunks(uri)) == poured(fs, entry) == written
        for start in (1, len(written) - 3, len(written), len(written) + 9):
            assert b"".join(fs.iter_chunks(uri, max(0, start))) == written[max(0, start) :]
    before = entry
    writer.write(b"more")
    writer.hsync()
    assert poured(fs, before) == written, "no more than it was said to have"
    writer.write(b", and what is not flushed")
    assert b"".join(fs.iter_chunks(uri)).startswith(written + b"more")
    writer.close()
    closed = fs.stat(uri)
    assert closed is not None
    assert fs.stat_flushed([closed]) == [closed]
    assert poured(fs, closed) == b"".join(fs.iter_chunks(uri)) == written + b"more, and what is not flushed"


def test_what_a_dead_writer_left_open_is_made_whole(root: str, conf_dir: str, fs: FileSystem, base: str) -> None:
    uri, client = f"{base}/left-open", hdfs_native.Client(root, load(conf_dir))
    fs.write_bytes(uri, b"before, ")
    writer = client.append(uris.path(uri))
    writer.write(b"flushed")
    writer.hsync()
    assert fs.read_bytes(uri) != b"before, flushed", "its last block does not count while it is open"
    fs.recover_lease(uri)
    assert fs.read_bytes(uri) == b"before, flushed"
    fs.append(uri, b", and more")
    fs.recover_lease(uri)
    assert fs.read_bytes(uri) == b"before, flushed, and more"


def test_a_log_that_its_earlier_writer_has_opened_again_is_never_read_in_part(
    root: str, conf_dir: str, fs: FileSystem, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master that took the hidden last block for an empty log would begin the job anew."""
    uri, log = f"{base}/events.jsonl", b'{"kind": "Noted"}\n'
    fs.write_bytes(uri, log)
    writer = hdfs_native.Client(root, load(conf_dir)).append(uris.path(uri))
    with monkeypatch.context() as patch:
        patch.setattr(fs, "recover_lease", lambda _: None)  # the writer opened the file after it
        with pytest.raises(EngineUnavailable, match=f"0 of its {len(log)} bytes can be read: it is being written"):
            AppendedFile(uri, "event log", fs).read()
    writer.close()
    assert AppendedFile(uri, "event log", fs).read() == log


def test_flushes_of_many_files_are_known_at_once(root: str, conf_dir: str, fs: FileSystem, base: str) -> None:
    client = hdfs_native.Client(root, load(conf_dir))
    writers = []
    for number in range(5):
        writers.append(client.create(uris.path(f"{base}/{number}"), hdfs_native.WriteOptions()))
        writers[-1].write(b"x" * number)
        writers[-1].hsync()
    fs.write_bytes(f"{base}/5", b"closed")
    fs.mkdirs(f"{base}/6")
    sizes = [entry.size for entry in fs.stat_flushed([*fs.children(base), Entry(f"{base}/gone", 0, 0, block_size=1)])]
    assert sizes == [0, 1, 2, 3, 4, 6, 0, 0]
    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(lambda writer: writer.close(), writers))


def test_a_file_that_changes_after_its_directory_was_listed(fs: FileSystem, base: str) -> None:
    names = [f"{base}/{number}" for number in range(20)]
    write_together(fs, dict.fromkeys(names, b"old"))
    known = fs.prefetch_stats(names)
    fs.write_bytes(names[0], b"new")
    fs.delete(names[1])
    for name in names[:2]:
        came = ""
        with contextlib.suppress(ConnectionBroken):  # a DataNode has the old blocks until it is told to let go of them
            came = poured(fs, known[name]).decode()
        assert came in ("", "old")
    assert poured(fs, known[names[2]]) == b"old"


def test_the_cache_keeps_the_time_that_yarn_compares(fs: FileSystem, base: str, conf_dir: str, tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("print(1)")
    source.chmod(0o755)
    digest = sha256_of(source)
    cache = Cache(base, conf_dir)
    uri = location(base, digest, source.name)
    first = cache.place(StagedFile("t.py", uri, source=str(source), sha256=digest))
    again = cache.place_all([StagedFile("t.py", uri, source=str(source), sha256=digest)])
    assert again == (first,)
    assert first.size == 8
    entry = fs.stat(uri)
    assert entry is not None
    assert entry.modified_ms == first.modified_ms
    assert entry.mode & 0o777 == 0o555, "containers share it"
    assert [each.mode & 0o777 for each in fs.children(uris.join(base, "cache"))] == [0o700]


def test_the_cache_is_cleaned_by_last_use(fs: FileSystem, base: str, conf_dir: str, tmp_path: Path) -> None:
    cache = Cache(base, conf_dir)
    placed = []
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        digest = sha256_of(tmp_path / name)
        placed.append(cache.place(StagedFile(name, location(base, digest, name), "file", str(tmp_path / name), digest)))
    now = placed[0].modified_ms / 1000
    assert cache.clean(3600, lambda: math.inf, now=now + 3000) == 0
    assert cache.clean(3600, lambda: now + 3000, now=now + 9000) == 0
    assert cache.clean(3600, lambda: math.inf, now=now + 4000) == 2
    assert [*fs.walk(base)] == []


def test_upload_commit_download(fs: FileSystem, base: str, helper: Callable[..., object], tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "deep/er").mkdir(parents=True)
    for number in range(120):
        (made / "deep" / f"f {number}").write_bytes(os.urandom(number))
    (made / "deep/er/b#ig?").write_bytes(os.urandom(5_000_000))
    temporary = uris.join(base, ".howdah-j-0")
    items = [
        {"path": str(made), "uri": uris.join(temporary, "worker-0.1")},
        {"path": str(tmp_path / "none"), "uri": uris.join(temporary, "worker-1.1")},
    ]
    uploaded = helper("inputs.transfer", "upload", {"items": items})
    assert uploaded == {
        "ok": True,
        "files": 121,
        "bytes": 5_007_140,
        "empty": [str(tmp_path / "none")],
        "left_out": [],
    }
    parts = [["worker-0.1", "worker-0"], ["worker-1.1", "worker-1"]]
    request = {"outputs": [{"temporary": temporary, "final": uris.join(base, "out"), "parts": parts}]}
    assert helper("outputs.commit", "commit", request) == {"ok": True, "committed": [uris.join(base, "out")]}
    assert [uris.name(entry.uri) for entry in fs.children(uris.join(base, "out"))] == ["_SUCCESS", "worker-0"]

    got = tmp_path / "got"
    wanted = [
        {
            "uri": entry.uri,
            "path": str(got / uris.below(entry.uri, uris.join(base, "out/worker-0"))),
            "size": entry.size,
        }
        for entry in fs.walk(uris.join(base, "out/worker-0"))
    ]
    assert helper("inputs.transfer", "download", {"items": wanted}) == {"ok": True, "files": 121, "bytes": 5_007_140}
    same = subprocess.run(["diff", "-r", str(made), str(got)], capture_output=True, text=True)
    assert same.stdout == ""


def test_a_file_that_went_or_changed(fs: FileSystem, base: str, helper: Callable[..., object], tmp_path: Path) -> None:
    fs.write_bytes(uris.join(base, "f"), b"123")
    gone = {"uri": uris.join(base, "gone"), "path": str(tmp_path / "gone"), "size": 1}
    assert helper("inputs.transfer", "download", {"items": [gone]}) == {
        "error": f"{base}/gone: no such file: it was there when the job was submitted"
    }
    changed = {"uri": uris.join(base, "f"), "path": str(tmp_path / "f"), "size": 4}
    answer = helper("inputs.transfer", "download", {"items": [changed]})
    assert "has changed since the job was submitted: it had 4 bytes, and has 3" in str(answer)
    assert list(tmp_path.iterdir()) == []


def test_a_commit_that_may_not_be_made(base: str, helper: Callable[..., object]) -> None:
    request = {"outputs": [{"temporary": f"{base}/.howdah-j-0", "final": f"{base}/out", "parts": []}]}
    helper("outputs.commit", "commit", request)
    other = {"outputs": [{"temporary": f"{base}/.howdah-k-0", "final": f"{base}/out", "parts": []}]}
    # Neither job wrote anything: what the second would commit is what is there.
    assert helper("outputs.commit", "commit", other) == {"ok": True, "committed": [f"{base}/out"]}
    with_parts = {"outputs": [{**other["outputs"][0], "temporary": f"{base}/.howdah-k-1", "parts": []}]}
    assert "error" not in str(helper("outputs.commit", "discard", with_parts))
