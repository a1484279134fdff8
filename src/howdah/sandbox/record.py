"""Reads and writes sandbox.json, the record of a run directory: the shape of its sandbox, and its processes. The file
is replaced whole, so that no reader sees half of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.errors import StagingError
from howdah.sandbox.process import Process

if TYPE_CHECKING:
    from typing_extensions import Self

NAME = "sandbox.json"


class Record(ABC):
    """The common part of the records of all kinds of sandboxes; each is a frozen dataclass."""

    if TYPE_CHECKING:
        shape: Any
        """What the user asked of the sandbox."""
        processes: Mapping[str, Process]
        """The daemons that were started, by name."""

    @classmethod
    def load(cls, run: Path) -> Self | None:
        """Return the run directory's record; None if it holds no sandbox.

        Raises:
            StagingError: the record cannot be read.
        """
        path = run / NAME
        try:
            known = json.loads(path.read_text())
            processes = {name: Process(**entry) for name, entry in known["pids"].items()}
            return cls._from_document(known, processes)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{path} is not a sandbox's record ({error})"
            raise StagingError(f"{problem}; remove {run} if nothing runs from it") from error

    def save(self, run: Path) -> None:
        """Replace the run directory's record by this one."""
        pids = {name: asdict(process) for name, process in self.processes.items()}
        document = {**self._document(run), "pids": pids, "shape": asdict(self.shape)}
        fresh = run / f"{NAME}.new"
        fresh.write_text(json.dumps(document, indent=1) + "\n")
        fresh.replace(run / NAME)

    def with_process(self, name: str, process: Process | None) -> Self:
        """Return this record with `process` as the process of this name, or without a process of this name if it is
        None."""
        others = {other: kept for other, kept in self.processes.items() if other != name}
        processes = others | ({name: process} if process else {})
        return replace(self, processes=processes)  # type: ignore[type-var]

    @classmethod
    @abstractmethod
    def _from_document(cls, known: dict[str, Any], processes: Mapping[str, Process]) -> Self:
        """Return the record for a document that `_document` has made."""

    @abstractmethod
    def _document(self, run: Path) -> dict[str, Any]:
        """Return the content of the file, except the shape and the processes."""
