"""Gives tests of local jobs a directory for HOWDAH_HOME, in which nothing runs at their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import local_jobs
import pytest


@pytest.fixture
def howdah_home(tmp_path: Path) -> Iterator[Path]:
    """A directory for HOWDAH_HOME. After the test its jobs are cancelled, and no process works there any more."""
    with local_jobs.howdah_home(tmp_path / "home") as home:
        yield home
