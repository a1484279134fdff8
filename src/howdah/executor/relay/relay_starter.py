"""Starts the relay process of an executor when its master asks for one (`howdah.executor.relay.relay_process`)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Mapping, Optional

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.identity import PRIVATE, Identity
from howdah.spec.codec import encode
from howdah.wire.helper_messages import CommandContext, RelayRequest

if TYPE_CHECKING:
    from howdah.executor.process.image_program import ImageProgram


class RelayStarter:
    """Starts the relay process, again if it has ended meanwhile. `private` is a directory that only this user may
    read; `log` writes a line to the executor's log."""

    def __init__(
        self,
        loop: EventLoop,
        identity: Identity,
        private: str,
        container: Mapping[str, str],
        log: Callable[[str], None],
    ) -> None:
        self.loop, self.identity, self.log = loop, identity, log
        self._private = private
        variables = {name: value for name, value in container.items() if name not in PRIVATE}
        master = f"{identity.master[0]}:{identity.master[1]}"
        self._context = CommandContext(master=master, variables=variables, directory=os.getcwd())
        self._number = 0
        self._file = -1
        self._helper: Optional[HelperProcess] = None

    def obey(self, number: int, master: str) -> None:
        """Start the relay process if there is none and `number` is new: the master, which is at `master` now, has asked
        for one since the last call."""
        if master != self._context.master:
            self._set_context(replace(self._context, master=master))
        if number in (0, self._number):
            return
        self._number = number
        if self._helper is not None:
            return
        if self._file < 0:
            self._file = os.memfd_create("command-context")
            self._set_context(self._context)
        request = RelayRequest(
            principal=self.identity.principal,
            key=self.identity.key.hex(),
            host=self.identity.host,
            context_fd=self._file,
        )
        argv = ("howdah.executor.relay.relay_process",)
        self._helper = HelperProcess(self.loop, argv, request, self._ended, inherited=(self._file,))

    def program_starts(self, variables: Mapping[str, str], directory: str, image: Optional[ImageProgram]) -> None:
        """Run commands from now on as this program is run."""
        context = CommandContext(master=self._context.master, variables=variables, directory=directory)
        if image is not None:
            words, terminal_option = image.command_words()
            context = replace(
                context,
                image_words=tuple(words),
                terminal_option=terminal_option,
                image_variables=image.environment,
                private=self._private,
            )
        self._set_context(context)

    def _set_context(self, context: CommandContext) -> None:
        """Set the context, and write it if a relay process may read it."""
        self._context = context
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(encode(context)).encode(), 0)

    def _ended(self, problem: str) -> None:
        self._helper = None
        if problem:
            self.log(f"the relay process has ended: {problem}")
