"""Callbacks of training libraries that report their run's progress and metrics.

A library is imported when its callback is made. Its class is made then, too, because it inherits from the library's.
"""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any, Callable, Dict, Mapping, Optional

from howdah.program.task_identity import HereError, current

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


class Reports:
    """Reports for a callback, by the calls of `howdah.program`."""

    def __init__(
        self,
        progress: Callable[[float], None],
        metric: Callable[[str, float, int], None],
        heartbeat: Callable[[], None],
    ) -> None:
        self.progress, self.heartbeat, self._metric = progress, heartbeat, metric
        self._last: Dict[str, float] = {}

    def add(self, metrics: Mapping[str, Any], step: int, repeated: bool = False) -> None:
        """Report the numbers in `metrics`. Unless `repeated`, report only those that have changed since the last
        time."""
        for name, value in metrics.items():
            try:
                number = float(value)
            except (TypeError, ValueError, RuntimeError):  # a text; a tensor of several numbers
                continue
            if repeated or number != self._last.get(name):
                self._last[name] = number
                self._metric(name, number, step)

    def batch(self, epoch: int, batches: int, of_batches: Any, epochs: Any) -> None:
        """Report progress after `batches` of an epoch that has `of_batches`, if both totals are known."""
        if of_batches and epochs and 0 < of_batches < math.inf and epochs > 0:
            self.progress(min(1.0, (epoch + batches / of_batches) / epochs))


def keras_callback(reports: Reports) -> Any:
    """Make a `keras.callbacks.Callback`; see `howdah.program.keras_callback`."""
    current()
    base: Any = _imported("keras_callback", "Keras", "keras").callbacks.Callback

    class HowdahCallback(base):  # type: ignore[misc]
        """Reports progress after each batch, and the metrics of each epoch."""

        def __init__(self) -> None:
            super().__init__()
            self._epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            self._epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            reports.batch(self._epoch, batch + 1, self.params.get("steps"), self.params.get("epochs"))

        def on_test_batch_end(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            reports.heartbeat()

        def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            reports.add(logs or {}, epoch + 1, repeated=True)

        def on_train_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
            reports.progress(1.0)

    return HowdahCallback()


def lightning_callback(reports: Reports) -> Any:
    """Make a `lightning.pytorch.Callback`; see `howdah.program.lightning_callback`."""
    current()
    names = sorted(_LIGHTNING, key=lambda name: name not in sys.modules)  # the one that the program uses
    base: Any = _imported("lightning_callback", "Lightning", *names).Callback

    class HowdahCallback(base):  # type: ignore[misc]
        """Reports progress after each batch, and metrics as often as the trainer logs, from the first process alone."""

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            if not trainer.is_global_zero:
                return
            done = batch_idx + 1
            if trainer.max_steps > 0:
                reports.progress(min(1.0, trainer.global_step / trainer.max_steps))
            else:
                reports.batch(trainer.current_epoch, done, trainer.num_training_batches, trainer.max_epochs)
            if done % max(1, trainer.log_every_n_steps) == 0:
                self._add(trainer)

        def on_validation_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if trainer.is_global_zero:
                reports.heartbeat()

        def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero and not trainer.sanity_checking:
                self._add(trainer)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                self._add(trainer)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                self._add(trainer)
                reports.progress(1.0)

        def _add(self, trainer: Any) -> None:
            reports.add(trainer.callback_metrics, trainer.global_step)

    return HowdahCallback()


def _imported(call: str, library: str, *names: str) -> Any:
    """Import the first of `names` that is installed."""
    problem = ""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            problem = problem or str(error)
    raise HereError(f"here.{call}(): {library} can't be imported here: {problem}")
