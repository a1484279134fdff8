"""A file system that does not answer, `stuck://`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NoReturn

import fsspec
from fsspec import AbstractFileSystem

LIMIT_S = 60.0


class StuckFiles(AbstractFileSystem):  # type: ignore[misc]
    """Keeps every caller waiting until it is `over`."""

    protocol = "stuck"
    asked, over = threading.Event(), threading.Event()

    def _wait(self, path: str, *_: object, **__: object) -> NoReturn:
        StuckFiles.asked.set()
        StuckFiles.over.wait(LIMIT_S)
        raise FileNotFoundError(path)

    info = open = cat_file = ls = _wait


fsspec.register_implementation("stuck", StuckFiles, clobber=True)


@contextlib.contextmanager
def stuck_directory() -> Iterator[str]:
    """Give the URI of a job's directory that nobody can read meanwhile; `StuckFiles.asked` is set when somebody
    tries."""
    StuckFiles.asked, StuckFiles.over = threading.Event(), threading.Event()
    try:
        yield "stuck://jobs/job_1"
    finally:
        StuckFiles.over.set()
