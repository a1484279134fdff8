"""What tasks of ended jobs printed: brought once from where their engine keeps it, then read at any offset.

The rule: a stream is kept below a bound of bytes for all together, those used least lately go first; without room on
this machine the caller is told so, and nothing else is harmed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from howdah.data.logfiles import Folder, chunk
from howdah.data.logorder import BOTH, STREAMS, TIMES
from howdah.data.logsearch import Wish, search_headed
from howdah.engines import Engine
from howdah.errors import HowdahError
from howdah.spec import TaskId
from howdah.web.found import Found
from howdah.web.source import Refused
from howdah.wire.messages import LogChunk

MOST_BYTES, LARGEST = 2 << 30, 1 << 30
KEEP_FREE = 64 << 20
_HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")


class Printed:
    """`folder` is where streams are kept meanwhile; it is emptied when the server begins."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}
        shutil.rmtree(folder, ignore_errors=True)

    async def read(
        self, engine: Engine, job_id: str, task: TaskId, stream: str, attempt: int, offset: int, limit: int
    ) -> LogChunk:
        """Bytes of a stream; a negative `offset` counts from the end.

        Raises:
            Refused: there is none, or no room for it here.
        """
        place = self._folder / job_id / quote(task.slug, safe="")
        async with self._locks.setdefault(str(place), asyncio.Lock()):
            if not place.is_dir():
                await asyncio.to_thread(self._bring, engine, job_id, task, place)
        os.utime(place)
        files = {name: place / f"{attempt}.{name}" for name in (*STREAMS, TIMES)}
        if not any(file.is_file() for name, file in files.items() if stream in (name, BOTH)):
            raise Refused(404, f"nothing is kept of what attempt {attempt} of {task} printed to {stream}")
        start, size, data = chunk(Folder(place, files), stream, offset, limit)
        return LogChunk(0, start, size, data.decode("latin-1"))

    async def search(
        self, engine: Engine, job_id: str, wish: Wish, tasks: Sequence[TaskId], attempt: int, stream: str
    ) -> Mapping[str, Any]:
        """Lines in what tasks printed; nothing is kept here.

        Raises:
            Refused: it can't be read.
        """
        began, found = time.monotonic(), Found(wish.limit)
        wanted = {str(task) for task in tasks}
        pieces = functools.partial(engine.logs, job_id, tasks[0] if len(tasks) == 1 else None, "*")
        try:
            found.add(await asyncio.to_thread(lambda: search_headed(pieces(), wish, wanted, attempt, stream)))
        except HowdahError as error:
            raise Refused(404, str(error)) from error
        return found.answer(time.monotonic() - began)

    def _bring(self, engine: Engine, job_id: str, task: TaskId, place: Path) -> None:
        fresh = place.with_name(f"{place.name}.part")
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True, mode=0o700)
            self._copy(engine, job_id, task, fresh)
            fresh.rename(place)
        except HowdahError as error:
            raise Refused(404, str(error)) from error
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            raise Refused(503, f"no room here for what {task} printed: {error.strerror or error}") from error
        self._shed(place)

    def _copy(self, engine: Engine, job_id: str, task: TaskId, into: Path) -> None:
        files = {}
        with contextlib.ExitStack() as stack:
            for heading, piece in engine.logs(job_id, task, "*"):
                found = _HEADING.fullmatch(heading)
                if not found:
                    continue
                name = f"{found[2]}.{found[3]}"
                if name not in files:
                    files[name] = stack.enter_context((into / name).open("wb"))
                if files[name].tell() < LARGEST:
                    if shutil.disk_usage(into).free < KEEP_FREE:
                        raise OSError(28, "the disk is nearly full")
                    files[name].write(piece)

    def _shed(self, newest: Path) -> None:
        places = sorted((each for each in self._folder.glob("*/*") if each != newest), key=lambda p: p.stat().st_mtime)
        sizes = {place: sum(file.stat().st_size for file in place.iterdir()) for place in [*places, newest]}
        for place in places:
            if sum(sizes.values()) <= MOST_BYTES:
                return
            shutil.rmtree(place, ignore_errors=True)
            del sizes[place]
