"""Tests what the page's editor of a note and tags sends."""

from __future__ import annotations

from typing import Any

import pytest
from page_script import called

BEGUN = {"note": "n", "tags": ["a", "b"], "archived": False}


@pytest.mark.parametrize(
    "changes", [{}, {"note": ""}, {"tags": ["a"]}, {"tags": []}, {"archived": True}, {"note": "m", "tags": ["b", "a"]}]
)
def test_only_what_was_changed_is_sent(changes: dict[str, Any]) -> None:
    assert called("overview/annotationChanges.ts", "changesOf", [[BEGUN, {**BEGUN, **changes}]]) == [changes]
