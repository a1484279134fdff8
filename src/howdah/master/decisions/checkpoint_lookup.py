"""Looks for the checkpoint that programs resume from, once all tasks that start together have joined: then no program
writes any more."""

from __future__ import annotations

from dataclasses import field

from howdah.master.decisions.actions import Action, FindCheckpoint
from howdah.spec.values import dataclass


@dataclass
class CheckpointLookups:
    """The checkpoints that each epoch resumes from. One lookup at a time serves all epochs that wait for one."""

    found: dict[int, str] = field(default_factory=dict)
    """The checkpoint's URI by epoch; "" where there is none."""
    looking: tuple[int, ...] = ()
    """The epochs for which a lookup runs now."""
    waiting: list[int] = field(default_factory=list)
    """The epochs that joined since that lookup began."""

    def needed(self, epoch: int, actions: list[Action]) -> bool:
        """Return whether the programs of `epoch` have to wait for a lookup, which is begun if necessary."""
        if epoch in self.found:
            return False
        if epoch not in self.looking and epoch not in self.waiting:
            self.waiting.append(epoch)
            self.begin(actions)
        return True

    def begin(self, actions: list[Action]) -> None:
        """Begin a lookup for all epochs that wait, unless one runs."""
        if self.waiting and not self.looking:
            self.looking, self.waiting = tuple(self.waiting), []
            actions.append(FindCheckpoint(self.looking))

    def end(self, epochs: tuple[int, ...], uri: str, actions: list[Action]) -> None:
        """Note the checkpoint of `epochs`, and begin the next lookup."""
        self.looking = ()
        self.found.update(dict.fromkeys(epochs, uri))
        self.begin(actions)
