"""Tests this machine's engine by the engines' contract."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.testing.engine_contract import EngineContract


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    return home


class TestLocalEngine(EngineContract):
    name = "local"

    @pytest.fixture(autouse=True)
    def _base(self, tmp_path: Path) -> None:
        self.base = tmp_path

    @contextlib.contextmanager
    def other_user(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOWDAH_HOME", str(self.base / "other"))
            yield

    @contextlib.contextmanager
    def without_masters(self) -> Iterator[None]:
        """What starts masters is not executable."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setattr("sys.executable", str(self.base / "note.txt"))
            yield
