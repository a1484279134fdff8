"""Tests that the builder of the page says which of its steps took too long."""

from __future__ import annotations

import sys

import pytest
from page_script import page_builder


@pytest.mark.parametrize("limit_s", [0.05, -1.0])
def test_a_step_that_takes_too_long_is_named(limit_s: float) -> None:
    builder = page_builder()
    command = [sys.executable, "-c", "import time; time.sleep(300)"]
    with pytest.raises(builder.NotBuilt, match=r"^eslint took longer than the 0 s that it had$"):
        builder._run("eslint", command, [sys.executable], limit_s)
