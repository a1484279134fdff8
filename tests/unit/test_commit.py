"""Tests that a commit in an object store, which renames by copying, is finished when it is run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from howdah.errors import StagingError
from howdah.outputs import snapshot
from howdah.outputs.commit import OutputCommit, commit, discard, set_aside
from howdah.spec import uris
from howdah.storage import progress
from howdah.storage.filesystem import FileSystem
from howdah.storage.fsspec_adapter import FsspecFileSystem
from howdah.storage.local import LocalFileSystem
from howdah.storage.viewfs import ViewFileSystem

BASE = "memory:///b"


class Store(MemoryFileSystem):
    """An object store that breaks instead of copying or removing object number `life`."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store, self.pseudo_dirs = dict[str, Any](), [""]
        self.life = -1
        self.copied: list[str] = []

    def _change(self) -> None:
        if self.life == 0:
            raise ConnectionResetError(104, "the connection broke")
        self.life -= 1

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        self._change()
        super().cp_file(path1, path2, **options)
        self.copied.append(path2)

    def rm_file(self, path: str) -> None:
        self._change()
        super().rm_file(path)


def lay_out(files: Mapping[str, bytes]) -> tuple[Store, FsspecFileSystem]:
    store = Store()
    for name, data in files.items():
        store.pipe_file(f"{BASE}/{name}", data)
    return store, FsspecFileSystem("s3://b", store)


def test_each_object_that_a_commit_moves_is_told_to_the_master(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "on_moved", progress.on_moved)  # is as before afterwards
    snapshot.report_moves()
    report, told = progress.on_moved, list[str]()
    monkeypatch.setattr(progress, "on_moved", told.append)
    store, fs = lay_out({f".howdah-j-0/worker-0.1/{name}": b"x" for name in ("a", "b", "c")})
    commit(OutputCommit(f"{BASE}/.howdah-j-0", f"{BASE}/model", False, (("worker-0.1", ""),)), fs)
    assert len(told) == len(store.copied) >= 3
    report(told[0])
    assert capfd.readouterr().out == '{"done_files": 1, "done_bytes": 0}\n'


@pytest.mark.parametrize("name", ["", "worker-0"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_commit_that_breaks_off_anywhere_is_finished(name: str, overwrite: bool) -> None:
    names = ("#1", "_SUCCESS", "a.pt", "d/b.pt", "z.pt")
    output = OutputCommit(f"{BASE}/.howdah-j-0", f"{BASE}/model", overwrite, (("worker-0.1", name),))
    files = {f".howdah-j-0/worker-0.1/{each}": each.encode() for each in names}
    for life in range(100):
        store, fs = lay_out({**files, **({"model/old": b"old"} if overwrite else {})})
        store.life = life
        broke = False
        try:
            commit(output, fs)
        except StagingError:
            broke = True
        store.life = -1
        commit(output, fs)
        found = {uris.below(entry.uri, output.final): fs.read_bytes(entry.uri) for entry in fs.walk(output.final)}
        assert found.pop("_SUCCESS").startswith(b"published by howdah: "), life
        wanted = {uris.path(uris.join("memory:///", name, each))[1:]: each.encode() for each in names}
        if not name:
            wanted["_SUCCESS.program"] = wanted.pop("_SUCCESS")
        assert found == wanted, life
        assert not fs.exists(output.temporary), life
        if not broke:
            assert life > 10
            return
    raise AssertionError("it never finished")


def test_the_mark_of_a_complete_directory_is_copied_last() -> None:
    names = ("_SUCCESS", "_metadata", "d/_SUCCESS", "d/part", "part")
    store, fs = lay_out({f"old/{name}": b"" for name in names})
    fs.rename(f"{BASE}/old", f"{BASE}/new")
    assert store.copied == [f"/b/new/{name}" for name in ("d/part", "part", "_metadata", "d/_SUCCESS", "_SUCCESS")]


def breaks(store: Store, life: int, act: Callable[[], object]) -> bool:
    """Return whether an act breaks off at the change number `life` in the store."""
    store.life = life
    try:
        act()
    except StagingError:
        return True
    finally:
        store.life = -1
    return False


@pytest.mark.parametrize("is_a_jobs", [False, True])
def test_what_was_there_is_put_back_wherever_the_commit_and_its_undoing_break_off(is_a_jobs: bool) -> None:
    def content() -> dict[str, bytes]:
        files = {uris.below(entry.uri, second.final): fs.read_bytes(entry.uri) for entry in fs.walk(second.final)}
        return {name: data for name, data in files.items() if name != "_SUCCESS"}

    first, second = (OutputCommit(f"{BASE}/.howdah-{job}-0", f"{BASE}/model", True, (("w", ""),)) for job in "jk")
    old, new = ({name: word + name.encode() for name in ("a", "d/_m")} for word in (b"old", b"new"))
    seen = []
    for life in range(100):
        for undoing in range(100):
            store, fs = lay_out({f"{'.howdah-j-0/w' if is_a_jobs else 'model'}/{name}": old[name] for name in old})
            if is_a_jobs:
                commit(first, fs)
            for name, data in new.items():
                store.pipe_file(f"{second.temporary}/w/{name}", data)
            is_broken = breaks(store, life, partial(commit, second, fs))
            is_undone = not breaks(store, undoing, partial(discard, second, fs))
            discard(second, fs)
            seen.append(content() == new)
            assert content() in (old, new), (life, undoing)
            assert not fs.exists(second.temporary), (life, undoing)
            if is_undone:
                break
        if not is_broken:
            break
    assert seen == sorted(seen), "once the new output is there it stays"
    assert set(seen) == {False, True}


@pytest.mark.parametrize("first_removed", ["_SUCCESS", "d/_m"])
@pytest.mark.parametrize("is_a_jobs", [False, True])
def test_the_old_output_is_whole_somewhere_until_the_new_one_is_wherever_two_commits_break_off(
    is_a_jobs: bool, first_removed: str
) -> None:
    class Unordered(Store):
        def rm(self, path: Any, recursive: bool = False, maxdepth: Any = None) -> None:
            found = self.find(path) if recursive else []
            for name in sorted(found, key=lambda name: (not name.endswith(f"/{first_removed}"), name)):
                self.rm_file(name)
            if not found:
                super().rm(path, recursive, maxdepth)

    def whole(files: Mapping[str, bytes]) -> set[str]:
        tops = {path.split("/")[2] for path in store.find("/b")}
        places = [(top, f"/b/{top}/{name}", data) for top in tops for name, data in files.items()]
        return tops - {top for top, path, data in places if not store.exists(path) or store.cat_file(path) != data}

    first, second = (OutputCommit(f"{BASE}/.howdah-{job}-0", f"{BASE}/model", True, (("w", ""),)) for job in "jk")
    old, new = ({name: word + name.encode() for name in ("a", "d/_m")} for word in (b"old", b"new"))
    for life in range(100):
        for again in range(100):
            store = Unordered()
            fs = FsspecFileSystem("s3://b", store)
            for name, data in old.items():
                store.pipe_file(f"{BASE}/{'.howdah-j-0/w' if is_a_jobs else 'model'}/{name}", data)
            if is_a_jobs:
                commit(first, fs)
            for name, data in new.items():
                store.pipe_file(f"{second.temporary}/w/{name}", data)
            is_broken = breaks(store, life, partial(commit, second, fs))
            is_broken_again = breaks(store, again, partial(commit, second, fs))
            assert whole(old) or "model" in whole(new), (life, again)
            commit(second, fs)
            assert "model" in whole(new), (life, again)
            assert is_a_jobs or whole(old), (life, again)
            if not is_broken_again:
                break
        if not is_broken:
            return
    raise AssertionError("it never finished")


@pytest.mark.parametrize("own", [b"", b"{}"])
def test_what_a_commit_that_broke_off_has_gathered_is_kept_of_a_failed_job_without_its_marks(own: bytes) -> None:
    output = OutputCommit(f"{BASE}/.howdah-j-0", f"{BASE}/model", parts=(("w", ""),), failed=f"{BASE}/model.failed")
    files = {"a": b"a", "d/b": b"b"}
    mark = {"_SUCCESS.program": own} if own else {}
    seen = []
    for life in range(100):
        store, fs = lay_out({f".howdah-j-0/w/{name}": data for name, data in {**files, "_SUCCESS": own}.items()})
        is_broken = breaks(store, life, partial(commit, output, fs))
        is_kept, _ = set_aside(output, fs)
        seen.append(is_kept)
        place, marked = ("/b/model.failed", "_FAILED") if is_kept else ("/b/model", "_SUCCESS")
        found = {path: store.cat_file(path) for path in store.find("/b")}
        assert found.pop(f"{place}/{marked}").startswith(b"published by howdah"), life
        assert found == {f"{place}/{name}": data for name, data in {**files, **mark}.items()}, life
        if not is_broken:
            break
    assert seen == sorted(seen, reverse=True), "once the output is there it stays"
    assert set(seen) == {False, True}


def test_a_view_moves_as_what_is_mounted_does(tmp_path: Path) -> None:
    mounts = {"s": "s3a://b/x", "here": "file:///x"}
    properties = "".join(
        f"<property><name>fs.viewfs.mounttable.c.link./{name}</name><value>{at}</value></property>"
        for name, at in mounts.items()
    )
    (tmp_path / "core-site.xml").write_text(f"<configuration>{properties}</configuration>")

    def mounted(uri: str, _: str) -> FileSystem:
        return FsspecFileSystem(uri, Store()) if uri.startswith("s3a:") else LocalFileSystem()

    view = ViewFileSystem("viewfs://c", str(tmp_path), mounted)
    assert [view.moves_at_once(f"viewfs://c/{name}/out") for name in mounts] == [False, True]


def test_of_a_failed_job_that_has_uploaded_nothing_nothing_is_kept() -> None:
    store, fs = lay_out({"model.saved/2026_11_21_15_00_00/_SAVED": b"{}", ".howdah-j-0-saves/x": b""})
    output = OutputCommit(
        f"{BASE}/.howdah-j-0",
        f"{BASE}/model",
        parts=(("worker-0.1", ""),),
        snapshot_prefix=f"{BASE}/model.saved/",
        unfinished=f"{BASE}/.howdah-j-0-saves",
        failed=f"{BASE}/model.failed",
    )
    assert set_aside(output, fs) == (False, "")
    assert store.find("/b") == ["/b/model.saved/2026_11_21_15_00_00/_SAVED"]


def test_a_snapshot_is_moved_again_when_the_connection_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    class BrokenOnce(Store):
        def _change(self) -> None:
            try:
                super()._change()
            except ConnectionResetError:
                self.life = -1
                raise

    names = ("a", "b", "_SAVED")
    for life in range(7):
        store = BrokenOnce()
        for name in names:
            store.pipe_file(f"{BASE}/.howdah-j-0-saves/{name}", name.encode())
        monkeypatch.setattr(snapshot, "filesystem", lambda _, store=store: FsspecFileSystem("s3://b", store))
        store.life = life
        final = f"{BASE}/model.saved/2026_11_21_15_00_00"
        asked = snapshot.PublishSnapshotRequest(f"{BASE}/.howdah-j-0-saves", final, f"{BASE}/model.saved/")
        assert not snapshot.publish(asked).empty
        assert store.find("/b") == sorted(f"{uris.path(final)}/{name}" for name in names), life
