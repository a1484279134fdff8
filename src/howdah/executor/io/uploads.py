"""What a task made, brought to where the job's outputs lie: all of it when its program has ended well, and of a job
that has failed what is to be kept then, be it whole or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.io.transfer import Misplaced, Transfer, upload_items
from howdah.executor.process.process_tree import Reaper
from howdah.wire.messages import Assignment, Upload

MOST_TOLD = 10
Ended = Callable[[str], None]


class Uploads:
    """`done` are the URIs that are there. `keeping` holds while what is to be kept is uploaded, `kept` from then on.
    `tell` writes a line where people look."""

    def __init__(self, loop: EventLoop, reaper: Reaper, directory: str, tell: Callable[[str], None]) -> None:
        self.loop, self.reaper, self.directory, self.tell = loop, reaper, directory, tell
        self._transfer: Optional[Transfer] = None
        self.forget()

    def forget(self) -> None:
        """The program is to run again."""
        self.done: Tuple[str, ...] = ()
        self.keeping = self.kept = False

    def upload(self, assignment: Assignment, printed: Tuple[str, ...], ended: Ended) -> None:
        """What the program has made, all of it, beside what it `printed` to; then `ended(problem)`."""
        self._run(assignment, assignment.uploads, printed, ended)

    def keep(self, assignment: Optional[Assignment], ended: Ended) -> None:
        """What is to be kept and is not there yet; then `ended(problem)`."""

        def over(problem: str) -> None:
            self.keeping, self.kept = False, True
            ended(problem)

        self.keeping = True
        if assignment is None:
            over("")
            return
        wanted = assignment.uploads
        left = [replace(one, required=False) for one in wanted if one.keep_failed and one.uri not in self.done]
        self._run(assignment, left, self.done, over)

    def stop(self, grace: float) -> None:
        """TERM, then KILL."""
        if self._transfer is not None:
            self._transfer.stop(grace)

    def _run(self, assignment: Assignment, wanted: Sequence[Upload], before: Tuple[str, ...], ended: Ended) -> None:
        def over(problem: str) -> None:
            left_out = self._transfer.left_out if self._transfer is not None else ()
            self._transfer = None
            for line in left_out[:MOST_TOLD]:
                self.tell(f"{line}; it is not uploaded")
            if len(left_out) > MOST_TOLD:
                self.tell(f"and {len(left_out) - MOST_TOLD} more links out of the working directory")
            if not problem:
                self.done = (*before, *(str(item["uri"]) for item in items))
            ended(problem)

        try:
            items = upload_items(wanted, self.directory, assignment.fetches)
            if items:
                self._transfer = Transfer(self.loop, self.reaper, "upload", items, assignment.localise_s, over)
        except (Misplaced, OSError) as error:
            ended(str(error))
            return
        if not items:
            over("")
