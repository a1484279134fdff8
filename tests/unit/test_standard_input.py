"""Tests keeping standard input as a file."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest

from howdah.client import standard_input
from howdah.client.standard_input import keep_input
from howdah.errors import SpecError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    return tmp_path


def test_all_of_it_is_kept_for_its_owner_alone(home: Path) -> None:
    kept = keep_input(io.BytesIO(bytes(3 << 20)))
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (bytes(3 << 20), 0o600)
    assert keep_input(io.BytesIO(bytes(3 << 20))) == kept != keep_input(io.BytesIO(b""))


def test_an_input_without_an_end_is_refused_and_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        numbers = itertools.count()

        def read(self, size: int = -1) -> bytes:
            next(self.numbers)
            return bytes(size)

    monkeypatch.setattr(standard_input, "MAX_MIB", 4)
    with pytest.raises(SpecError, match="brings more than 4 MiB"):
        keep_input(Endless())  # type: ignore[arg-type]
    assert next(Endless.numbers) < 10
    assert list((home / "cache/packed").iterdir()) == []
