"""Builds the bootstrap archive: one small zip that Python runs, and that turns a container into an executor.

It holds `howdah.executor.bootstrap` and the pure Python that this needs, so that any CPython from 3.9 on runs it. The
same sources make the same bytes.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import howdah

NAME = "howdah-bootstrap.pyz"
_PARTS = (
    "__init__.py",
    "errors.py",
    "spec/*.py",
    "wire/*.py",
    "localfiles/*.py",
    "staging/__init__.py",
    "staging/archive_extraction.py",
    "staging/working_directory.py",
    "executor/__init__.py",
    "executor/bootstrap.py",
    "executor/event_loop.py",
    "executor/job_downloads.py",
    "executor/master_link/__init__.py",
    "executor/master_link/channel.py",
    "executor/process/__init__.py",
    "executor/process/process_tree.py",
)
_MAIN = "import sys\n\nfrom howdah.executor.bootstrap import main\n\nsys.exit(main())\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can tell


def bootstrap_archive() -> bytes:
    """Return the archive; the command `python3 howdah-bootstrap.pyz` runs it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, text in [("__main__.py", _MAIN.encode()), *_sources()]:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return content.getvalue()


def _sources() -> Iterator[tuple[str, bytes]]:
    package = Path(howdah.__file__).parent
    for part in _PARTS:
        for path in sorted(package.glob(part)):
            yield f"howdah/{path.relative_to(package).as_posix()}", path.read_bytes()
