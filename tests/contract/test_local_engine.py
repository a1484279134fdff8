"""Tests this machine's engine by the engines' contract."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from howdah.testing.engine_contract import EngineContract, variables


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    return home


class TestLocalEngine(EngineContract):
    name = "local"

    def other_user(self, base: Path) -> AbstractContextManager[None]:
        return variables({"HOWDAH_HOME": str(base / "other")})

    @contextlib.contextmanager
    def without_masters(self, base: Path) -> Iterator[None]:
        """What starts masters is not executable."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setattr("sys.executable", str(base / "note.txt"))
            yield
