"""The page heads what could not be read, and what could not be kept, as what it is."""

from __future__ import annotations

from page_script import called

from howdah.eventfiles.event_directory import EventDirectory, EventFile
from howdah.eventfiles.run_store import Run


def test_what_is_told_of_memory_is_told_apart_from_files_that_cannot_be_read() -> None:
    root = EventDirectory("file:///board")
    root.halvings, root.full, root.runs = 2, True, {".": Run()}
    root.runs["."].left_out = 7
    root._failed = ["it is not there any more"]
    root._files = {"file:///board/a": EventFile("file:///board/a", ".", failed="at byte 3: 7 values of more tags")}
    texts = [error["text"] for error in root.errors()]
    of_memory = dict(zip(texts, called("trainingCurves/memoryErrors.ts", "isMemoryError", texts), strict=True))
    assert len(of_memory) == 4
    assert [text for text, told in of_memory.items() if told] == [texts[0], texts[-1]]
