"""Tests that a node fetches a file once for all tasks, and never uses a copy that is damaged or writable by others."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from howdah.inputs.node_cache import NodeCache
from howdah.inputs.transfer import download
from howdah.spec import uris
from howdah.wire.helper_messages import FileCopy


def quiet(files: int, size: int) -> None:
    pass


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "there" / "data.bin"
    path.parent.mkdir()
    path.write_bytes(b"content")
    return path


def copy_of(source: Path, to: Path) -> FileCopy:
    status = source.stat()
    return FileCopy(str(to), uris.of_local(source), status.st_size, status.st_mtime_ns // 10**6, cache=True)


def content(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and path.parent.name != "locks" and not path.suffix]


def test_the_second_task_gets_the_first_ones_file(tmp_path: Path, source: Path) -> None:
    root = tmp_path / "kept"
    for task in ("one", "two"):
        cache = NodeCache([str(root)], 1 << 20)
        assert download([copy_of(source, tmp_path / task / "x")], quiet, cache) == (1, 7)
        assert (tmp_path / task / "x").read_bytes() == b"content"
        assert cache.hits == (7 if task == "two" else 0)
    (kept,) = content(root)
    assert kept.stat().st_nlink == (3 if os.geteuid() else 1), "root could write to a link, and so has copies"
    assert kept.stat().st_mode & 0o777 == 0o400
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_file_that_changed_is_another_file(tmp_path: Path, source: Path) -> None:
    cache = NodeCache([str(tmp_path / "kept")], 1 << 20)
    download([copy_of(source, tmp_path / "one")], quiet, cache)
    source.write_bytes(b"CONTENT")
    os.utime(source, ns=(1, 1_000_000_000))
    download([copy_of(source, tmp_path / "two")], quiet, cache)
    assert (tmp_path / "two").read_bytes() == b"CONTENT"
    assert (cache.hits, len(content(tmp_path / "kept"))) == (0, 2)


def test_what_rotted_is_fetched_again(tmp_path: Path, source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cache = NodeCache([str(tmp_path / "kept")], 1 << 20)
    download([copy_of(source, tmp_path / "one")], quiet, cache)
    (kept,) = content(tmp_path / "kept")
    kept.chmod(0o600)
    kept.write_bytes(b"c0ntent")
    download([copy_of(source, tmp_path / "two")], quiet, cache)
    assert (tmp_path / "two").read_bytes() == b"content"
    assert cache.hits == 0


def test_two_that_want_it_at_once_fetch_it_once(tmp_path: Path, source: Path) -> None:
    caches = [NodeCache([str(tmp_path / "kept")], 1 << 20) for _ in range(8)]
    copies = [copy_of(source, tmp_path / str(number)) for number in range(8)]
    threads = [
        threading.Thread(target=download, args=([copy], quiet, cache))
        for copy, cache in zip(copies, caches, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cache.hits for cache in caches) == 7 * 7
    assert len(content(tmp_path / "kept")) == 1


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    cache = NodeCache([str(tmp_path / "kept")], 100)
    for number in range(4):
        path = tmp_path / f"source{number}"
        path.write_bytes(bytes([number]) * 30)
        download([copy_of(path, tmp_path / f"have{number}")], quiet, cache)
        if number == 2:  # the first is used once more
            download([copy_of(tmp_path / "source0", tmp_path / "again")], quiet, cache)
    left = {path.read_bytes()[0] for path in content(tmp_path / "kept")}
    assert left == {0, 2, 3}
    assert all((tmp_path / f"have{number}").read_bytes() == bytes([number]) * 30 for number in range(4))
    large = tmp_path / "large"
    large.write_bytes(bytes(101))
    download([copy_of(large, tmp_path / "have")], quiet, cache)
    assert {path.read_bytes()[0] for path in content(tmp_path / "kept")} == left


@pytest.mark.parametrize("wrong", ["open", "link", "exposed"])
def test_a_place_that_others_could_write_is_not_used(
    tmp_path: Path, source: Path, wrong: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "above").mkdir(mode=0o700)
    root = tmp_path / "above" / "kept"
    if wrong == "open":
        root.mkdir(mode=0o777)
        root.chmod(0o777)
    elif wrong == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        root.symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "above").chmod(0o777)
    assert NodeCache([str(root)], 1 << 20).roots == ()
    assert str(root) in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").mkdir(mode=0o700)
    os.chown(tmp_path / "kept", 12345, 12345)
    assert NodeCache([str(tmp_path / "kept")], 1 << 20).roots == ()
    assert "owner 12345" in capfd.readouterr().err


def test_where_a_node_keeps_them(tmp_path: Path) -> None:
    users = [tmp_path / disk / "usercache" / "ann" for disk in ("d1", "d2")]
    for user in users:
        (user / "appcache" / "application_1_1").mkdir(parents=True)
    local_dirs = ",".join(str(user / "appcache" / "application_1_1") for user in users)
    cache = NodeCache.from_environment({"LOCAL_DIRS": local_dirs})
    assert cache is not None
    assert cache.roots == tuple(str(user / "howdah-inputs") for user in users)
    assert NodeCache.from_environment({"LOCAL_DIRS": local_dirs, "HOWDAH_DATA_CACHE_MIB": "0"}) is None
    named = NodeCache.from_environment({"LOCAL_DIRS": local_dirs, "HOWDAH_DATA_CACHE_DIR": str(tmp_path)})
    assert named is not None
    assert named.roots == (str(tmp_path / f"howdah-{os.geteuid()}"),)


def wait_until_locked_out() -> None:
    """Wait until a thread of this process waits for a lock (man proc_locks)."""
    waits = re.compile(rf"^\d+: -> FLOCK .* {os.getpid()} ", re.MULTILINE)
    deadline = time.monotonic() + 60
    while not waits.search(Path("/proc/locks").read_text()):
        assert time.monotonic() < deadline, "no thread waits for the lock"
        time.sleep(0.01)


def test_a_killed_fetcher_leaves_no_lock_and_its_rubbish_goes(tmp_path: Path, source: Path) -> None:
    root = tmp_path / "kept"
    code = f"""
import os, sys
from howdah.inputs.node_cache import NodeCache, _key
from howdah.inputs.download import verify_unchanged
from howdah.wire.helper_messages import FileCopy
cache = NodeCache([{str(root)!r}], 1 << 20)
with cache._locked(_key(verify_unchanged(FileCopy("", {uris.of_local(source)!r})))):
    print("held", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout
            holder.stdout.readline()
            cache = NodeCache([str(root)], 1 << 20)
            waiting = threading.Thread(target=download, args=([copy_of(source, tmp_path / "x")], quiet, cache))
            waiting.start()
            wait_until_locked_out()
            assert waiting.is_alive()
        finally:
            holder.kill()
    waiting.join(60)
    assert not waiting.is_alive(), "the file is not fetched though its lock is free"
    assert (tmp_path / "x").read_bytes() == b"content"


def test_a_fetcher_that_is_killed_before_the_last_step_stands_in_nobodys_way(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise SystemExit

    cache = NodeCache([str(tmp_path / "kept")], 1 << 20)
    with monkeypatch.context() as killing:
        killing.setattr(os, "replace", kill)
        with pytest.raises(SystemExit):
            download([copy_of(source, tmp_path / "x")], quiet, cache)
    (part,) = (tmp_path / "kept").rglob("*.part")
    assert part.stat().st_mode & 0o777 == 0o400
    modes, opened = list[int](), os.open

    def open_and_look(path: str, flags: int, *mode: int) -> int:
        if path == str(part):
            modes.append(part.stat().st_mode & 0o777)
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_and_look)
    assert download([copy_of(source, tmp_path / "x")], quiet, cache) == (1, 7)
    assert (tmp_path / "x").read_bytes() == b"content"
    assert modes[0] & 0o200, "only root may write to what is read-only"


def test_what_a_task_writes_to_its_input_stays_with_it(tmp_path: Path, source: Path) -> None:
    for task in ("one", "two"):
        download([copy_of(source, tmp_path / task)], quiet, NodeCache([str(tmp_path / "kept")], 1 << 20))
        assert (tmp_path / task).read_bytes() == b"content"
        with contextlib.suppress(PermissionError):
            (tmp_path / task).write_bytes(b"changed")
