"""The files of a job in a home on any file system: the upload at submission, and the state of the job that they
show."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from howdah.logs.store import PIECE_BYTES, open_log
from howdah.logs.stream_index import STREAMS, TIMES
from howdah.spec import StagedFile, StagedJob, TaskId, uris
from howdah.spec.codec import decode, is_well_typed
from howdah.spec.event_lines import read_log
from howdah.spec.fold import fold_recorded
from howdah.spec.view import JobView
from howdah.storage.content_cache import Cache
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import find_log


def upload(staged: StagedJob, cache: Cache) -> StagedJob:
    """Bring a job's files into the cache of its home; return the job with their places.

    Raises:
        StagingError: a file is missing, or there is no room.
    """
    uploads = (pair for each in staged.inputs for pair in each.uploads.items())
    inputs = [StagedFile(uris.name(uri), uri, source=source) for uri, source in uploads]
    placed = cache.place_all((*staged.files, *staged.page, *staged.runtime, *inputs))
    first, second = len(staged.files), len(staged.files) + len(staged.page)
    runtime = placed[second : second + len(staged.runtime)]
    return dataclasses.replace(staged, files=placed[:first], page=placed[first:second], runtime=runtime)


class JobFiles:
    """Reads the files of one job. `directory` is the URI of its directory."""

    def __init__(self, directory: str, conf_dir: str = "") -> None:
        self.directory, self._conf_dir, self._files = directory, conf_dir, filesystem(directory, conf_dir)

    def uri(self, name: str) -> str:
        """Return the URI of a file of the job."""
        return uris.join(self.directory, name)

    def submitted(self) -> tuple[StagedJob | None, float] | None:
        """Return the job as it was submitted (None if its file is damaged) and the time of its submission; None if it
        is being submitted, or removed."""
        entry = self._files.stat(self.uri("job.json"))
        if entry is None:
            return None
        staged = None
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            staged = decode(StagedJob, json.loads(self._files.read_bytes(entry.uri)))
        return staged if is_well_typed(StagedJob, staged) else None, entry.modified_ms / 1000

    def view(self) -> tuple[JobView, float]:
        """Return the view of the job by its event log, and the time of the log's last change."""
        found = find_log(self._files, self.uri("events.jsonl"))
        if found is None:
            return JobView(), 0.0
        return fold_recorded(read_log(found.read().decode("utf-8", "replace").splitlines())), found.modified_ms / 1000

    def master_url(self) -> str:
        """Return the address that the job's last master has recorded; "" if there was none."""
        uri = self.uri("master.json")
        with contextlib.suppress(ValueError, TypeError, KeyError):  # it is damaged
            return str(json.loads(self._files.read_bytes(uri))["url"]) if self._files.exists(uri) else ""
        return ""

    def read_logs(self, task: TaskId | None, stream: str) -> Iterator[tuple[str, bytes]]:
        """Yield the logs of a task, or of all tasks, as `Engine.logs` describes them."""
        tasks, names = self.uri("tasks"), (*STREAMS, TIMES) if stream == "*" else (stream,) if stream else STREAMS
        for each in self._files.children(tasks) if self._files.exists(tasks) else []:
            if task is None or uris.name(each.uri) == task.slug:
                role, _, index = uris.name(each.uri).rpartition("-")
                found = self._files.children(each.uri)  # a file system may keep names of its own there
                numbered = [entry for entry in found if uris.name(entry.uri).isdecimal()]
                for attempt in sorted(numbered, key=lambda entry: int(uris.name(entry.uri))):
                    heading = f"{role}:{index} attempt {uris.name(attempt.uri)}"
                    for name in names:
                        for piece in read_pieces(uris.join(attempt.uri, name), self._conf_dir):
                            yield f"{heading} {name}", piece


def read_pieces(uri: str, conf_dir: str = "") -> Iterator[bytes]:
    """Yield the content of a log; nothing if it does not exist."""
    files = filesystem(uri, conf_dir)
    with contextlib.suppress(FileNotFoundError):
        if files.exists(uri):  # a program may have put a link or a pipe in a file's place
            local = uri.startswith("file:")
            with open_log(Path(uris.path(uri))) if local else files.open_read(uri) as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
