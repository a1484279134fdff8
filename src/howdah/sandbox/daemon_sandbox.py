"""The common parts of all sandboxes: they start and stop, and report which of their daemons run."""

from __future__ import annotations

import shutil
import signal as signals
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from howdah.errors import EngineUnavailable, SpecError
from howdah.sandbox.daemons import Daemon, Daemons
from howdah.sandbox.record import NAME
from howdah.sandbox.run_directory import locked
from howdah.sandbox.sizes import describe_difference
from howdah.storage.progress import Notice, no_notice

if TYPE_CHECKING:
    from typing_extensions import Self

AnyDaemons = TypeVar("AnyDaemons", bound="Daemons[Any, Any]")


class DaemonSandbox(ABC, Generic[AnyDaemons]):
    """The daemons of one run directory, whose record every sandbox of that directory reads and changes. As a context
    manager the sandbox is up inside the block, and leaves nothing behind."""

    OPTION = ""
    """The option of `howdah sandbox` that names this kind."""

    def __init__(self, run_dir: Path, shape: Any) -> None:
        self.run_dir = run_dir.absolute()
        self.shape = shape

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @abstractmethod
    def env(self) -> dict[str, str]:
        """Return the variables that a client's environment needs."""

    @abstractmethod
    def _load(self) -> AnyDaemons | None:
        """Return the daemons that the run directory's record names; None if it holds no sandbox."""

    @abstractmethod
    def _prepare(self, progress: Notice) -> AnyDaemons:
        """Install what is missing, and write the configuration and the record of daemons that do not run yet."""

    @abstractmethod
    def _summary(self, daemons: AnyDaemons) -> str:
        """Return a description of the running daemons, as the end of a line."""

    def status(self) -> list[Daemon]:
        """Return all daemons in the order in which they start; [] if the run directory holds no sandbox."""
        daemons = self._load()
        return [daemons.daemon(role) for role in daemons.roles.values()] if daemons else []

    def is_up(self) -> bool:
        """Return whether all daemons of the sandbox run."""
        daemons = self.status()
        return bool(daemons) and all(daemon.up for daemon in daemons)

    def up(self, progress: Notice = no_notice) -> None:
        """Start the daemons that do not run, and return when jobs can be submitted.

        Raises:
            EngineUnavailable: something is missing, or a daemon has ended; all are then stopped, and the logs stay.
            SpecError: the run directory holds a sandbox of another shape.
        """
        begun = time.monotonic()
        with locked(self.run_dir):
            daemons = self._load_kept() or self._prepare(progress)
            missing = daemons.missing()
            if not missing:
                progress(f"already up: {self._summary(daemons)}")
                return
            progress(f"starting {', '.join(role.name for role in missing)}")
            daemons.start_all()
            progress(f"ready in {time.monotonic() - begun:.1f} s: {self._summary(daemons)}")

    def down(self, keep: bool = False, progress: Notice = no_notice) -> None:
        """Stop the sandbox's processes and the processes that they have started and, unless `keep`, remove its data."""
        if not (self.run_dir / NAME).exists():
            return
        with locked(self.run_dir):
            self._loaded().stop_all(progress)
            if not keep:
                self._remove_data()
            progress("stopped")

    def stop(self, name: str, signal: int = signals.SIGTERM) -> None:
        """Signal one daemon and wait until it has ended. Processes that it has started for jobs run on."""
        daemons = self._loaded()
        daemons.stop([daemons.role(name).name], signal)

    def _remove_data(self) -> None:
        shutil.rmtree(self.run_dir)

    def _load_kept(self) -> AnyDaemons | None:
        """Return the daemons of a sandbox that runs here at least in part; None if none does.

        Raises:
            SpecError: it has another shape.
        """
        daemons = self._load()
        if daemons is None or not any(map(daemons.alive, daemons.roles)):
            return None
        self._require_shape(daemons)
        return daemons

    def _require_shape(self, daemons: AnyDaemons) -> None:
        if daemons.record.shape != self.shape:
            difference = describe_difference(daemons.record.shape, self.shape)
            raise SpecError.at("sandbox", f"{self.run_dir} has {difference}; `{self._command('down')}` first")

    def _loaded(self) -> AnyDaemons:
        daemons = self._load()
        if daemons is None:
            raise EngineUnavailable(f"no sandbox in {self.run_dir}: `{self._command('up')}` first")
        return daemons

    def _command(self, verb: str) -> str:
        return " ".join(filter(None, ("howdah sandbox", verb, self.OPTION)))
