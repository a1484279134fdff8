"""Tests which files the cache takes, and which its cleaning removes."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.staged import StagedFile
from howdah.storage.content_cache import Cache, local_directory, location, max_unused_s, sha256_of

DIGEST = "0123456789abcdef" * 4
NOW = 2e9


def test_only_entries_are_removed(tmp_path: Path) -> None:
    """The home may be a directory in which its user keeps another `cache`, as `slurm.home: /shared/me` may."""
    gone = [f"01/{DIGEST}-a.whl", f"01/.{DIGEST}-b.whl.1234abcd.part", f"unpacked/{DIGEST}-c.zip/bin/python"]
    stay = ["huggingface/model.bin", "01/notes", "0123/model", f"models/{DIGEST}-x", "model.bin"]
    for name in (*gone, *stay):
        path = tmp_path / "cache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for path in (tmp_path / "cache").rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert Cache(uris.of_local(tmp_path)).clean(86400, lambda: math.inf, now=NOW, limit_s=60) == 3
    assert [(tmp_path / "cache" / name).exists() for name in (*gone, *stay)] == [False] * 3 + [True] * 5


def test_what_an_unfinished_job_may_need_stays(tmp_path: Path) -> None:
    path, asked = tmp_path / "cache" / "01" / f"{DIGEST}-a.whl", []
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (NOW, 1e9))  # used then

    def clean(now: float, oldest_job: float) -> int:
        def ask() -> float:
            asked.append(now)
            return oldest_job

        return Cache(uris.of_local(tmp_path)).clean(10.0, ask, now=now, limit_s=60)

    assert clean(NOW + 10, math.inf) == 0
    assert not asked, "nothing was old"
    assert clean(NOW + 99, NOW + 10) == 0
    assert clean(NOW + 99, NOW + 11) == 1
    assert asked == [NOW + 99, NOW + 99]


def test_a_submission_that_is_under_way_keeps_its_files() -> None:
    days = [max_unused_s({"cache_days": text}) / 86400 for text in ("0", "1", "7", "")]
    assert days == [1, 1, 7, 30]
    assert max_unused_s({}) == 30 * 86400


@pytest.mark.parametrize("now", ["print(2)", "print(1, 2)"])
@pytest.mark.parametrize("is_cached", [False, True])
def test_no_file_gets_the_name_of_another_content(tmp_path: Path, now: str, is_cached: bool) -> None:
    """A program that is edited while its job is submitted must not be what later jobs get for the earlier one."""
    cache, home, source = Cache(uris.of_local(tmp_path)), uris.of_local(tmp_path), tmp_path / "train.py"
    source.write_text("print(1)")
    digest = sha256_of(source)
    file = StagedFile("train.py", location(home, digest, "train.py"), "file", str(source), digest)
    if is_cached:
        cache.place(file)
    source.write_text(now)
    if is_cached and len(now) == len("print(1)"):
        cache.place(file)  # the job gets what it was staged with
    else:
        with pytest.raises(StagingError, match=r"train\.py: has changed while the job was submitted: submit it again"):
            cache.place(file)
    there = Path(uris.path(file.uri))
    assert there.exists() == is_cached
    assert not is_cached or there.read_text() == "print(1)"
    assert not list(there.parent.glob(".*.part"))


def test_a_file_that_has_changed_and_kept_its_times_is_refused_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is with what is written through a map of the file in memory."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "own"))
    cache, home, source = Cache(uris.of_local(tmp_path)), uris.of_local(tmp_path), tmp_path / "model.bin"
    source.write_bytes(bytes(4 << 20))
    monkeypatch.setattr("howdah.storage.content_cache._note_of", lambda _: tmp_path / "note")
    before = sha256_of(source)
    source.write_bytes(bytes([1]) * (4 << 20))
    assert sha256_of(source) == before
    file = StagedFile("model.bin", location(home, before, "model.bin"), "file", str(source), before)
    with pytest.raises(StagingError, match="has changed"):
        cache.place(file)
    after = sha256_of(source)
    assert after != before
    again = StagedFile("model.bin", location(home, after, "model.bin"), "file", str(source), after)
    assert cache.place(again).size == 4 << 20


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_what_howdah_has_packed_is_named_by_its_key(
    tmp_path: Path, is_elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "own"))
    packed = local_directory() / "environments/e.tar.gz"
    packed.parent.parent.mkdir(parents=True)
    if is_elsewhere:
        (tmp_path / "large").mkdir()
        packed.parent.symlink_to(tmp_path / "large")
    else:
        packed.parent.mkdir()
    packed.write_text("e")
    home = uris.of_local(tmp_path)
    file = StagedFile("e", location(home, DIGEST, "environment.tar.gz"), "archive", str(packed), DIGEST)
    assert Cache(home).place(file).size == 1
