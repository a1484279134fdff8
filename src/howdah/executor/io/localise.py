"""Localisation prepares a task's working directory. It removes what an earlier attempt has left, then brings the code
and the input files, checks the job's Python, and fetches the image."""

from __future__ import annotations

import posixpath
import time
from dataclasses import replace
from typing import Callable, Iterator, List, Optional, Protocol

from howdah.executor.environment import paths_on_node
from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.io.transfer import (
    PathUnusable,
    TransferProgress,
    bring_local,
    make_directories,
    make_executable,
    start_transfer,
)
from howdah.executor.io.working_directory import WorkingDirectory
from howdah.executor.process.interpreter_probe import interpreter, probe_interpreter
from howdah.wire.helper_messages import DownloadRequest, FileCopy
from howdah.wire.messages import Assignment

_REMOVED = "{count} files are removed that the try before has made or changed: only the checkpoint outlives a try"
_LINKED = "input files, such as {path}, are links to the files themselves: whoever writes to them changes them"
_CHANGED = (
    "input files, such as {path}, have not the size or time that they had where the job was submitted:"
    " this try reads them as they are"
)
_TWICE = "{count} files of archives, such as {name}, are not copied: other files have their names"
_TURN_S = 0.05
"""Seconds for which copying files may delay the loop's other events."""


class ImageStep(Protocol):
    """The image of a task, which is fetched last."""

    def begin(self, limit_s: float, on_end: OnEnd) -> None: ...

    def stop(self, grace_s: float) -> None: ...


class Localisation:
    """Runs the steps one after another, then calls `on_end(problem)`; `begin` may call it at once."""

    def __init__(
        self,
        loop: EventLoop,
        assignment: Assignment,
        work: WorkingDirectory,
        on_end: OnEnd,
        image: Optional[ImageStep] = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.loop, self.assignment, self.work = loop, assignment, work
        self.directory, self.on_end, self._tell = work.path, on_end, tell
        self.seconds = 0.0
        """Seconds that bringing the input files took."""
        self._brought, self._downloaded = TransferProgress(), TransferProgress()
        self._remote: List[FileCopy] = []
        self._placing: Iterator[None] = iter(())
        self._turn: Optional[Timer] = None
        self._began = time.monotonic()
        self._helper: Optional[HelperProcess] = None
        self._step = ""
        self._image, self._fetches_image = image, False

    @property
    def progress(self) -> TransferProgress:
        """Return how many files are here."""
        brought, downloaded = self._brought, self._downloaded
        return replace(
            brought,
            files=brought.files + downloaded.files,
            bytes=brought.bytes + downloaded.bytes,
            cached=brought.cached + downloaded.cached,
        )

    def begin(self) -> None:
        """Take the first step."""
        self._placing = self._place_files()
        self._place_some()

    def _place_some(self) -> None:
        """Bring files for a while, then let the loop handle other events."""
        self._turn, until = None, time.monotonic() + _TURN_S
        try:
            for _ in self._placing:
                if time.monotonic() > until:
                    self._turn = self.loop.call_later(0.0, self._place_some)
                    return
        except (PathUnusable, OSError, RecursionError) as error:
            self.on_end(str(error))
            return
        if self._remote:
            self._step, limit_s = "the download", self.assignment.localise_s
            self._helper = start_transfer(
                self.loop, DownloadRequest(tuple(self._remote)), limit_s, self._files_are_here, self._downloaded
            )
        else:
            self._files_are_here("")

    def _place_files(self) -> Iterator[None]:
        assignment, removed = self.assignment, 0
        if self.work.is_used:
            for count in self.work.remove_changes(assignment.synced_directories()):
                removed += count
                yield
        if removed:
            self._tell(_REMOVED.format(count=removed))
        if self.work.left:
            self._tell(f"{self.work.left} of the try before could not be removed")
        environments = {posixpath.normpath(path).partition("/")[0] for path in assignment.program_path}
        yield from self.work.make_own(assignment.unpack_into_workdir, environments, self._image is not None)
        if twice := sorted(set(self.work.passed_over)):
            self._tell(_TWICE.format(name=twice[0], count=len(twice)))
        make_directories(assignment.directories, self.directory)
        yield from bring_local(assignment.fetches, self.directory, self.work.inputs, self._brought, self._remote)
        if self._brought.linked:
            self._tell(_LINKED.format(path=self._brought.linked))
        if self._brought.changed:
            self._tell(_CHANGED.format(path=self._brought.changed))

    def stop(self, grace_s: float) -> None:
        """End the present step; `on_end` is called when it has ended."""
        if self._turn is not None:
            self._turn.cancel()
            self._placing = iter(())
            self.loop.call_later(0.0, lambda: self.on_end("stopped"))
        elif self._helper is not None:
            self._helper.stop(min(grace_s, 2.0), f"{self._step} was stopped")
        elif self._image is not None and self._fetches_image:
            self._image.stop(grace_s)

    def _files_are_here(self, problem: str) -> None:
        self._helper = None
        self.seconds = time.monotonic() - self._began
        python = ""
        try:
            if not problem:
                make_executable(self.assignment.fetches, self.directory)
        except OSError as error:
            problem = str(error)
        try:
            if not problem:
                python = interpreter(paths_on_node(self.assignment, self.directory))
        except OSError as error:
            problem = f"the job's environment: {error}"
        if python:
            self._step = "the trial of the environment"
            self._helper = probe_interpreter(self.loop, python, self._python_tried)
        else:
            self._fetch_image(problem)

    def _python_tried(self, problem: str) -> None:
        self._helper = None
        self._fetch_image(f"the job's environment: {problem}" if problem else "")

    def _fetch_image(self, problem: str) -> None:
        if problem or self._image is None:
            self.on_end(problem)
            return
        self._fetches_image = True
        self._image.begin(self.assignment.localise_s, self.on_end)
