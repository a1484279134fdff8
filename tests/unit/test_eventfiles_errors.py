"""Tests that data dropped for lack of memory is distinguished from files that cannot be read."""

from __future__ import annotations

from howdah.eventfiles.event_directory import EventDirectory, EventFile
from howdah.eventfiles.run_store import Run


def test_what_is_told_of_memory_is_told_apart_from_files_that_cannot_be_read() -> None:
    root = EventDirectory("file:///board")
    root.halvings, root.full, root.runs = 2, True, {".": Run()}
    root.runs["."].left_out = 7
    root._failed = ["it is not there any more"]
    root._files = {"file:///board/a": EventFile("file:///board/a", ".", failed="at byte 3: 7 values of more tags")}
    errors = root.errors()
    assert [error["text"] for error in errors if error["memory"]] == [
        "there is no memory for all of it: of each tag about one step in 4 is kept, and no further tags",
        "7 values of more tags than can be kept are left out",
    ]
    assert [error["text"] for error in errors if not error["memory"]] == [
        "it is not there any more",
        "at byte 3: 7 values of more tags",
    ]
