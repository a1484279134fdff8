"""Localisation prepares a task's working directory: code, then input files, a check of the job's Python, the image."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Optional, Protocol

from howdah.executor.environment import paths_on_node
from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.io.transfer import (
    PathUnusable,
    TransferProgress,
    link_local,
    make_directories,
    make_executable,
    start_transfer,
)
from howdah.executor.io.unpack_into_workdir import unpack_into_workdir
from howdah.executor.process.interpreter_probe import interpreter, probe_interpreter
from howdah.wire.helper_messages import DownloadRequest
from howdah.wire.messages import Assignment


class ImageStep(Protocol):
    """The image of a task, which is fetched last."""

    def begin(self, limit_s: float, on_end: OnEnd) -> None: ...

    def stop(self, grace_s: float) -> None: ...


class Localisation:
    """Runs the steps one after another, then calls `on_end(problem)`; `begin` may call it at once."""

    def __init__(
        self, loop: EventLoop, assignment: Assignment, directory: str, on_end: OnEnd, image: Optional[ImageStep] = None
    ) -> None:
        self.loop, self.assignment = loop, assignment
        self.directory, self.on_end = directory, on_end
        self.seconds = 0.0
        """How long the input files took."""
        self._linked, self._downloaded = TransferProgress(), TransferProgress()
        self._began = time.monotonic()
        self._helper: Optional[HelperProcess] = None
        self._step = ""
        self._image, self._fetches_image = image, False

    @property
    def progress(self) -> TransferProgress:
        """Return how many files are linked and downloaded."""
        linked, downloaded = self._linked, self._downloaded
        return replace(
            linked,
            files=linked.files + downloaded.files,
            bytes=linked.bytes + downloaded.bytes,
            cached=linked.cached + downloaded.cached,
        )

    def begin(self) -> None:
        """Take the first step."""
        assignment = self.assignment
        try:
            unpack_into_workdir(assignment.unpack_into_workdir, self.directory)
            make_directories(assignment.directories, self.directory)
            remote = link_local(assignment.fetches, self.directory, self._linked)
        except (PathUnusable, OSError) as error:
            self.on_end(str(error))
            return
        if remote:
            self._step, limit_s = "the download", assignment.localise_s
            self._helper = start_transfer(
                self.loop, DownloadRequest(tuple(remote)), limit_s, self._files_are_here, self._downloaded
            )
        else:
            self._files_are_here("")

    def stop(self, grace_s: float) -> None:
        """End the step that is under way; `on_end` is called then."""
        if self._helper is not None:
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
