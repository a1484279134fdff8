"""Uploads a task's output directories when its program has ended well, and keeps some of a job that has failed."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.io.transfer import PathUnusable, TransferProgress, start_transfer, upload_items
from howdah.executor.io.working_directory import WorkingDirectory
from howdah.spec.message import message
from howdah.wire.helper_messages import UploadRequest
from howdah.wire.messages import Assignment, Upload

MAX_WARNINGS = 10
"""The most files left out that are named one by one."""


class Uploads:
    """Uploads the outputs of one task. `warn` tells users what is left out."""

    def __init__(self, loop: EventLoop, work: WorkingDirectory, warn: Callable[[str], None]) -> None:
        self.loop, self.work, self.warn = loop, work, warn
        self._helper: Optional[HelperProcess] = None
        self.reset()

    def reset(self) -> None:
        """Forget what was uploaded, because the program is to run again."""
        self.done: Tuple[str, ...] = ()
        """URIs of the outputs that are complete."""
        self.keeping = False
        """Whether outputs of a failed job are being uploaded."""
        self.kept = False
        """Whether the upload of a failed job's outputs has been tried."""

    def upload(self, assignment: Assignment, printed: Tuple[str, ...], on_end: OnEnd) -> None:
        """Upload everything that the program has made; `printed` are the URIs of the streams that are complete
        already."""
        self._run(assignment, assignment.uploads, printed, on_end)

    def keep(self, assignment: Optional[Assignment], on_end: OnEnd) -> None:
        """Upload the outputs to be kept of a failed job, except those that are there already."""

        def ended(problem: str) -> None:
            self.keeping, self.kept = False, True
            on_end(problem)

        self.keeping = True
        if assignment is None:
            ended("")
            return
        missing = [upload for upload in assignment.uploads if upload.keep_failed and upload.uri not in self.done]
        self._run(assignment, [replace(upload, required=False) for upload in missing], self.done, ended)

    def stop(self, grace_s: float) -> None:
        """End the upload: TERM, then KILL."""
        if self._helper is not None:
            self._helper.stop(min(grace_s, 2.0), "the upload was stopped")

    def _run(self, assignment: Assignment, uploads: Sequence[Upload], before: Tuple[str, ...], on_end: OnEnd) -> None:
        progress = TransferProgress()

        def ended(problem: str) -> None:
            self._helper = None
            left_out = progress.left_out
            for line in left_out[:MAX_WARNINGS]:
                self.warn(message("{file}; it is not uploaded", file=line))
            if len(left_out) > MAX_WARNINGS:
                more = len(left_out) - MAX_WARNINGS
                self.warn(message("{count} more files and links are not uploaded", count=more))
            if not problem:
                self.done = (*before, *(item.uri for item in items))
            on_end(problem)

        try:
            items = upload_items(uploads, self.work, assignment.fetches, self.warn)
        except (PathUnusable, OSError) as error:
            on_end(str(error))
            return
        if items:
            limit_s = assignment.localise_s
            self._helper = start_transfer(self.loop, UploadRequest(tuple(items)), limit_s, ended, progress)
        else:
            ended("")
