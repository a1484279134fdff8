"""Looking for the master that took over: it leaves its address in the job's directory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.parse
from typing import Callable, Optional, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.io.transfer import Transfer
from howdah.executor.process.process_tree import Reaper
from howdah.spec import uris

_LIMIT_S = 8.0

Found = Callable[[Optional[Tuple[str, int]]], None]


class MasterDiscovery:
    """One look at `master.json` in `directory`; then `found` is called with host and port, or None."""

    def __init__(self, loop: EventLoop, reaper: Reaper, directory: str, found: Found) -> None:
        self.found = found
        uri = uris.join(directory, "master.json")
        self._temporary = ""
        if uris.split(uri)[0] == "file":
            loop.call_later(0.0, lambda: self.found(_address(uris.path(uri))))
            return
        # In the container's own directory: it goes with the container when this process is killed.
        self._temporary = tempfile.mkdtemp(prefix=".howdah-", dir=os.getcwd())
        self._path = os.path.join(self._temporary, "master.json")
        item = {"uri": uri, "path": self._path, "size": -1}
        self._transfer = Transfer(loop, reaper, "download", [item], _LIMIT_S, self._fetched)

    def _fetched(self, problem: str) -> None:
        where = None if problem else _address(self._path)
        shutil.rmtree(self._temporary, ignore_errors=True)  # a helper that took too long leaves half a file
        self.found(where)


def _address(path: str) -> Optional[Tuple[str, int]]:
    try:
        with open(path, encoding="utf-8") as file:
            url = urllib.parse.urlsplit(json.load(file)["url"])
    except (OSError, ValueError, KeyError):
        return None
    return (url.hostname, url.port) if url.hostname and url.port else None
