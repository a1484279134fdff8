"""Tests that hostile .zip and .tar archives are refused alike, whatever Python's own modules allow."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import tarfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.errors import StagingError
from howdah.staging.archive_extraction import unpack


@dataclass(frozen=True)
class Member:
    name: str
    kind: str = "file"
    to: str = ""
    content: bytes = b"x"
    mode: int = 0o644


_TAR = {"file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
_TAR |= {"pipe": tarfile.FIFOTYPE, "device": tarfile.CHRTYPE}
_ZIP = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}
_ZIP |= {"pipe": stat.S_IFIFO, "device": stat.S_IFCHR}


def tar(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for one in members:
            info = tarfile.TarInfo(one.name)
            info.type, info.linkname, info.mode = _TAR[one.kind], one.to, one.mode
            info.size, info.mtime = (len(one.content), 1_600_000_000) if one.kind == "file" else (0, 0)
            archive.addfile(info, io.BytesIO(one.content) if one.kind == "file" else None)
    return path


def zipped(path: Path, *members: Member) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for one in members:
            info = zipfile.ZipInfo("x")
            info.filename = one.name + ("/" if one.kind == "directory" else "")
            info.create_system, info.external_attr = 3, (_ZIP[one.kind] | one.mode) << 16
            archive.writestr(info, one.to.encode() if one.kind == "link" else one.content)
    return path


@pytest.fixture(params=["a.tar", "a.tar.gz", "a.zip"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Packs members in one of the kinds."""
    (tmp_path / "outside").mkdir()

    def pack(*members: Member) -> Path:
        path = tmp_path / request.param
        return zipped(path, *members) if path.suffix == ".zip" else tar(path, *members)

    return pack


ENVIRONMENT = (
    Member("bin", "directory"),
    Member("bin/python", "link", "/usr/bin/python3"),
    Member("bin/python3", "link", "python"),
    Member("bin/tool", content=b"#!/bin/sh\n", mode=0o755),
    Member("lib64", "link", "lib"),
    Member("lib/a.py"),
    Member("./lib//deep/b.py", content=b"deep"),
    Member("lib/up", "link", "../bin/tool"),
    Member("lib/nowhere", "link", "not/there/yet"),
    Member("带空格 的/文件.txt"),
)


def test_an_environment_comes_out_as_it_was(packed, tmp_path: Path) -> None:
    unpack(packed(*ENVIRONMENT), tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "bin/python").readlink() == Path("/usr/bin/python3")
    assert (out / "lib64/deep/b.py").read_bytes() == b"deep"
    assert os.access(out / "lib/up", os.X_OK)
    assert not os.access(out / "lib/a.py", os.X_OK)
    assert (out / "带空格 的/文件.txt").read_bytes() == b"x"


def test_times_of_a_tar_are_kept_for_byte_code(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "a.tar", Member("a.py")), tmp_path / "out")
    assert (tmp_path / "out/a.py").stat().st_mtime == 1_600_000_000


OUT = "{outside}"
"""Stands for a directory that must stay empty."""


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ((Member("d", "link", OUT), Member("d/x")), "'d/x' lies below 'd', which is a link"),
        ((Member("d/x"), Member("d", "link", OUT)), "'d' is there twice"),
        ((Member("d", "link", "../outside"), Member("e", "link", "d")), "'d' is a link out of the archive"),
        ((Member("d", "link", OUT),), "'d' is a link out of the archive"),
        ((Member("a", "link", "../outside/x"),), "'a' is a link out of the archive"),
        ((Member("s/t/u"), Member("d", "link", "s/t"), Member("e", "link", "d/../../../outside")), "'e' is a link out"),
        ((Member("top/x"), Member("a/b/d", "link", "../../top"), Member("e", "link", "a/b/d/../..")), "'e' is a link"),
        ((Member("a", "link", "b"), Member("b", "link", "../outside")), "is a link out of the archive"),
        ((Member("bin/evil", "link", OUT),), "'bin/evil' is a link out of the archive"),
        ((Member("bin/python3", "link", OUT), Member("bin/python3/x")), "lies below 'bin/python3', which is a link"),
        ((Member("../outside/x"),), "'../outside/x' leads out of the archive"),
        ((Member("a/../../outside/x"),), "leads out of the archive"),
        ((Member(OUT + "/x"),), "leads out of the archive"),
        ((Member("f"), Member("f/x")), "'f/x' lies below 'f', which is a file"),
        ((Member("f"), Member("f")), "'f' is there twice"),
        ((Member("f"), Member("./f")), "'f' is there twice"),
        ((Member("f"), Member("f", "link", "g")), "'f' is there twice"),
        ((Member("f", "directory"), Member("f")), "'f' is there twice"),
        ((Member("p", "pipe"),), "'p' is a device or a pipe"),
        ((Member("p", "device"),), "'p' is a device or a pipe"),
        ((Member("a\nb"),), "has a control character in its name"),
        ((Member("a\x1b[2Jb"),), "has a control character in its name"),
        ((Member("."),), "is not a name for a file"),
        ((Member("a", "link", ""),), "is a link to nothing"),
    ],
)
def test_what_leads_out_is_refused_by_its_name(packed, tmp_path: Path, members: tuple[Member, ...], told: str) -> None:
    outside = str(tmp_path / "outside")
    archive = packed(*(Member(m.name.replace(OUT, outside), m.kind, m.to.replace(OUT, outside)) for m in members))
    with pytest.raises(StagingError) as refused:
        unpack(archive, tmp_path / "out")
    assert str(refused.value).startswith(f"{archive.name} is not unpacked: ")
    assert told in str(refused.value)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("to", ["../outside/x", "/etc/passwd", "later", "d", "l"])
def test_a_hard_link_is_to_a_file_before_it(tmp_path: Path, to: str) -> None:
    before = (Member("d", "directory"), Member("l", "link", "d"))
    with pytest.raises(StagingError, match="not unpacked"):
        unpack(tar(tmp_path / "a.tar", *before, Member("h", "hard", to), Member("later")), tmp_path / "out")


def test_a_hard_link_within(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "a.tar", Member("a", content=b"same"), Member("h", "hard", "a")), tmp_path / "out")
    assert (tmp_path / "out/h").read_bytes() == b"same"


def test_no_right_comes_with_an_archive_that_others_could_use(packed, tmp_path: Path) -> None:
    unpack(packed(Member("f", mode=0o6777), Member("d", "directory", mode=0o7777), Member("n", mode=0)), tmp_path / "o")
    modes = {name: stat.S_IMODE((tmp_path / "o" / name).stat().st_mode) for name in ("f", "d")}
    assert modes == {"f": 0o555, "d": 0o755}
    assert os.access(tmp_path / "o/n", os.R_OK)


def test_a_locked_zip_is_told(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", Member("f"))
    data = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(mark) + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(StagingError, match=r"a\.zip cannot be unpacked: .*password"):
        unpack(path, tmp_path / "out")


def test_a_tar_that_is_damaged_in_its_middle_is_no_shorter_tar(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", Member("a"), Member("b"), Member("c"))
    data = bytearray(path.read_bytes())
    data[1024 + 150] ^= 0xFF  # in the checksum of b's header
    path.write_bytes(data)
    with pytest.raises(StagingError, match=r"a\.tar cannot be unpacked: it is damaged"):
        unpack(path, tmp_path / "out")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_damage_is_a_refusal_and_nothing_lies_outside(packed, tmp_path: Path, data: st.DataObject) -> None:
    path = packed(*(one for one in ENVIRONMENT))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    before = set(tmp_path.iterdir())
    out = tmp_path / f"out-{os.urandom(6).hex()}"
    with contextlib.suppress(StagingError):
        unpack(path, out)
    assert set(tmp_path.iterdir()) - before <= {out}


def test_what_tar_itself_packs_comes_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/file").write_bytes(os.urandom(100_000))
    os.link(source / "deep/er/file", source / "same")
    (source / "link").symlink_to("deep/er")
    with (source / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 20)
        sparse.seek(1 << 19)
        sparse.write(b"middle")
    subprocess.run(["tar", "--sparse", "-czf", tmp_path / "a.tar.gz", "-C", source, "."], check=True)
    (tmp_path / "a.tar.gz").rename(tmp_path / "a.tar")
    unpack(tmp_path / "a.tar", tmp_path / "out")
    assert subprocess.run(["diff", "-r", source, tmp_path / "out"]).returncode == 0
