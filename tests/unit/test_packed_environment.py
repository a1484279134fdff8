"""Tests where the `bin` of a packed environment is found."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from howdah.staging.packed_environment import find_top


@pytest.mark.parametrize(
    ("names", "top"),
    [
        (["bin/python", "lib/x"], ""),
        (["./bin/python"], ""),
        (["env/lib/x", "env/bin/python"], "env"),
        (["./env/bin/python", "bin/other"], "env"),
        (["env/share/bin/x", "lib/site/bin/y"], ""),
        (["cabin/x"], ""),
        ([], ""),
    ],
)
@pytest.mark.parametrize("kind", ["tar.gz", "tar", "zip"])
def test_where_it_is(names: list[str], top: str, kind: str, tmp_path: Path) -> None:
    archive = tmp_path / f"e.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for name in names:
                packed.writestr(name, b"x")
    else:
        with tarfile.open(archive, "w:gz" if kind == "tar.gz" else "w") as tar:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 1
                tar.addfile(member, io.BytesIO(b"x"))
    assert find_top(archive) == top


def test_a_damaged_archive_is_left_to_who_unpacks_it(tmp_path: Path) -> None:
    (tmp_path / "e.tar.gz").write_bytes(b"\x1f\x8b\x08\x00no")
    assert find_top(tmp_path / "e.tar.gz") == ""
