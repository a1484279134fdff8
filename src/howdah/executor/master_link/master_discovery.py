"""Finds the master that took over: every master writes its address to the job's directory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.parse
from typing import Callable, Optional, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.io.transfer import TransferProgress, start_transfer
from howdah.spec import uris
from howdah.wire.helper_messages import DownloadRequest, FileCopy

_MAX_FETCH_S = 8.0

OnFound = Callable[[Optional[Tuple[str, int]]], None]


def find_master(loop: EventLoop, directory: str, on_found: OnFound, limit_s: float = _MAX_FETCH_S) -> None:
    """Read `master.json` of the job's `directory` once; `on_found` is called with host and port, or None. It is called
    with None after `limit_s` where the file system does not answer."""
    uri = uris.join(directory, "master.json")
    if uris.split(uri)[0] == "file":
        loop.call_later(0.0, lambda: on_found(_address(uris.path(uri))))
        return
    # In the container's own directory: it goes with the container when this process is killed.
    temporary = tempfile.mkdtemp(prefix=".howdah-master-", dir=os.getcwd())
    path = os.path.join(temporary, "master.json")

    def fetched(problem: str) -> None:
        address = None if problem else _address(path)
        shutil.rmtree(temporary, ignore_errors=True)  # a helper that took too long leaves half a file
        on_found(address)

    start_transfer(loop, DownloadRequest((FileCopy(path, uri),)), limit_s, fetched, TransferProgress())


def _address(path: str) -> Optional[Tuple[str, int]]:
    try:
        with open(path, encoding="utf-8") as file:
            url = urllib.parse.urlsplit(json.load(file)["url"])
    except (OSError, ValueError, KeyError):
        return None
    return (url.hostname, url.port) if url.hostname and url.port else None
