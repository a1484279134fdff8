"""What a task needs before it joins, step by step: its code in the working directory, its data, a Python that runs."""

from __future__ import annotations

import os
import time
from typing import Callable, Union

from howdah.executor.event_loop import EventLoop
from howdah.executor.io.transfer import Misplaced, Totals, Transfer, link_local, make_directories, make_executable
from howdah.executor.io.unpack_into_workdir import unpack_into_workdir
from howdah.executor.process import process_tree
from howdah.executor.process.interpreter_probe import InterpreterProbe, interpreter
from howdah.wire.messages import Assignment


class Localisation:
    """`done(problem)` is called when all is in place, with "" or one line that says what is not; perhaps at once, by
    `begin`. `seconds` is how long the data took."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        assignment: Assignment,
        directory: str,
        done: Callable[[str], None],
    ) -> None:
        self.loop, self.reaper, self.assignment = loop, reaper, assignment
        self.directory, self.done = directory, done
        self._linked, self.seconds = Totals(), 0.0
        self._began = time.monotonic()
        self._step: Union[Transfer, InterpreterProbe, None] = None

    @property
    def totals(self) -> Totals:
        """What is there so far."""
        step = self._step
        return self._linked.with_those_of(step) if isinstance(step, Transfer) else self._linked

    def begin(self) -> None:
        """The first step."""
        try:
            unpack_into_workdir(self.assignment.spread, self.directory)
            make_directories(self.assignment.directories, self.directory)
            remote = link_local(self.assignment.fetches, self.directory, self._linked)
            if remote:
                limit = self.assignment.localise_s
                self._step = Transfer(self.loop, self.reaper, "download", remote, limit, self._downloaded)
                return
        except (Misplaced, OSError) as error:
            self.done(str(error))
            return
        self._downloaded("")

    def stop(self, grace: float) -> None:
        """Whatever goes on is ended; `done` is called then."""
        if self._step is not None:
            self._step.stop(grace)

    def _downloaded(self, problem: str) -> None:
        self._linked, self._step = self.totals, None
        self.seconds = time.monotonic() - self._began
        try:
            if not problem:
                make_executable(self.assignment.fetches, self.directory)
        except OSError as error:
            problem = str(error)
        if problem or not self.assignment.program_path:
            self.done(problem)
            return
        try:
            python = interpreter([os.path.join(self.directory, entry) for entry in self.assignment.program_path])
            if python:
                self._step = InterpreterProbe(self.loop, self.reaper, python, self._tried)
                return
        except OSError as error:
            problem = f"the job's environment: {error}"
        self.done(problem)

    def _tried(self, problem: str) -> None:
        self._step = None
        self.done(f"the job's environment: {problem}" if problem else "")
