"""What a program keeps in directories of its own and others see on the shared filesystem: checkpoints, event files."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Union

from howdah.executor.event_loop import EventLoop
from howdah.executor.io.checkpoint_sync import CheckpointSync, Done
from howdah.executor.io.event_file_sync import EventFileSync
from howdah.executor.process.process_tree import Reaper
from howdah.wire.messages import Assignment, Orders


class DirectorySyncs:
    """All of one program's, as if they were one; `of` gives None where there are none."""

    def __init__(self, loop: EventLoop, mirror: Optional[CheckpointSync], board: Optional[EventFileSync]) -> None:
        self.loop, self.mirror = loop, mirror
        self.parts: List[Union[CheckpointSync, EventFileSync]] = [part for part in (mirror, board) if part is not None]

    @classmethod
    def of(
        cls, loop: EventLoop, reaper: Reaper, assignment: Assignment, directory: str, note: Callable[[str], None]
    ) -> Optional[DirectorySyncs]:
        mirror = board = None
        if assignment.mirror is not None:
            mirror = CheckpointSync(loop, reaper, assignment.mirror, directory, assignment.localise_s, note)
        if assignment.board is not None:
            board = EventFileSync(loop, reaper, assignment.board, directory, note)
        return cls(loop, mirror, board) if mirror or board else None

    def local_variables(self, variables: Mapping[str, str]) -> Dict[str, str]:
        """The program's variables, for the directories here."""
        for part in self.parts:
            variables = part.local_variables(variables)
        return dict(variables)

    def fetch(self, orders: Orders, done: Done) -> None:
        """What is there before a program starts; then `done(problem)`."""
        if self.mirror is not None:
            self.mirror.fetch(orders, done)
        else:
            self.loop.call_later(0.0, lambda: done(""))

    def begin(self) -> None:
        """The program runs."""
        for part in self.parts:
            part.begin()

    def finish(self, done: Done) -> None:
        """The program has ended: store what it has left, all at once, then `done`."""
        left = list(self.parts)

        def finished(part: Union[CheckpointSync, EventFileSync]) -> None:
            left.remove(part)
            if not left:
                done("")

        for part in self.parts:
            part.finish(lambda _, part=part: finished(part))  # type: ignore[misc] # a default binds it

    def stop(self, grace: float) -> None:
        """Soon."""
        for part in self.parts:
            part.stop(grace)
