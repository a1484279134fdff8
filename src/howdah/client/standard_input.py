"""Stores the standard input as a file, named by its content, so that it can be sent along with a job."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import BinaryIO

from howdah.errors import SpecError
from howdah.localfiles.file_errors import explain
from howdah.storage.content_cache import local_directory

NAME = "stdin"
"""The file's name in the working directory."""
MAX_MIB = 256
_PIECE = 1 << 20


def keep_input(stream: BinaryIO) -> Path:
    """Return a file in howdah's cache with all bytes of `stream`.

    Raises:
        SpecError: that is more than `MAX_MIB` MiB.
        StagingError: the cache can't be written.
    """
    directory, digest, size = local_directory() / "packed", hashlib.sha256(), 0
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=directory, prefix=f".{NAME}.", delete=False) as file:
            try:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    if size > MAX_MIB << 20:
                        raise SpecError.at("--stdin", f"brings more than {MAX_MIB} MiB: name a file of it with --file")
                    file.write(piece)
                file.flush()
                kept = Path(file.name).replace(directory / f"{digest.hexdigest()}.{NAME}")
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise explain(error, error.filename or str(directory)) from error
    return kept
