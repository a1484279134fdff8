"""Provides a browser to each test file, and `howdah` commands with a home of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium
from local_jobs import LocalJobs
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path)
    yield made
    made.end_all()
