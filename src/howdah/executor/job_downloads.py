"""Downloads those files of the job that a container's node does not see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Tuple

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.codec import encode
from howdah.spec.staged import MODULES, StagedFile
from howdah.wire.helper_messages import DownloadRequest, FileCopy

LIMIT_S = 3600.0


def with_downloads(files: Tuple[StagedFile, ...], directory: Path, runtime: str) -> Tuple[StagedFile, ...]:
    """Return `files`; those that this node does not see are downloaded into `directory` by howdah's own libraries.
    These libraries are in the directory `runtime`; "" stands for the installed ones.

    Raises:
        StagingError: a file cannot be downloaded.
    """
    placed, copies = [], []
    for number, file in enumerate(files):
        if not file.uri.startswith("file:"):
            path = directory / str(number) / uris.name(file.uri)
            copies.append(FileCopy(str(path), file.uri, file.size, file.modified_ms))
            file = replace(file, uri=path.as_uri())
        placed.append(file)
    if copies:
        _download(tuple(copies), runtime)
    return tuple(placed)


def _download(copies: Tuple[FileCopy, ...], runtime: str) -> None:
    command = [sys.executable, "-m", "howdah.inputs.transfer", "download"]
    variables = {**os.environ, "PYTHONPATH": os.path.join(runtime, MODULES)} if runtime else dict(os.environ)
    request = json.dumps(encode(DownloadRequest(copies)))
    try:
        done = subprocess.run(
            command,
            input=request.encode(),
            stdout=subprocess.PIPE,
            env=variables,
            cwd="/",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StagingError(f"the job's files were not downloaded within {LIMIT_S:.0f} s") from None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    answer = json.loads(lines[-1]) if lines else {}
    if "ok" not in answer:
        reason = answer.get("error") or f"the download ended with {done.returncode}"
        raise StagingError(f"the job's files could not be downloaded: {reason}")
