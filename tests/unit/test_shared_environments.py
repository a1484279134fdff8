"""Tests that no task writes to an environment of howdah's cache that later jobs use: it is copied, or sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.submit import is_linked, is_used_in_place
from howdah.config.settings import Settings
from howdah.engines import Engine

VENV = Path("/home/me/.cache/howdah/environments/0123456789abcdef")


class Cluster:
    """An engine of this home, whose nodes see its home if that is a directory."""

    def __init__(self, home: str) -> None:
        self.home = home

    def sees(self, path: str | Path) -> bool:
        return f"file://{path}".startswith(self.home)


@pytest.mark.parametrize(
    ("home", "shared", "linked", "in_place"),
    [
        ("file:///home/me/.cache", "", True, False),
        ("file:///nfs/howdah", "/home", True, False),
        ("file:///nfs/howdah", "", False, False),
        ("hdfs://n/user/me", "/home", False, False),
        ("s3://bucket/me", "/home", False, False),
        ("file:///nfs/howdah", "/", True, False),
        ("hdfs://n/user/me", "/", False, True),
    ],
)
def test_a_shared_environment_is_copied_or_sent(home: str, shared: str, linked: bool, in_place: bool) -> None:
    engine: Engine = Cluster(home)  # type: ignore[assignment]
    settings = Settings({"shared_paths": shared}, {})
    assert is_linked(VENV, engine, settings) == linked
    assert is_used_in_place(engine, settings) == in_place
