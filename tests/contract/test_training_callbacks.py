"""Tests the callbacks of `howdah.here`, driven as Keras and Lightning drive them, in a program with a real master.

Neither library is installed here: a package of the same name gives the class from which the callbacks inherit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_program import Job, job, problem

from howdah.spec import TaskId

__all__ = ["job"]

KERAS = """
class callbacks:
    class Callback:
        def set_params(self, params):
            self.params = params
"""
FIT = """
callback = here.keras_callback()
callback.set_params({"epochs": 2, "steps": 4, "verbose": 0})
for epoch in range(2):
    callback.on_epoch_begin(epoch)
    for batch in range(4):
        callback.on_train_batch_end(batch, {"loss": 9.0})
    callback.on_test_batch_end(0, {"loss": 9.0})
    callback.on_epoch_end(epoch, {"loss": 0.5, "name": "text"})
    print(open(here_progress).read().strip(), flush=True)
callback.on_train_end()
print(open(here_progress).read().strip())
"""
PLACE = "import os; here_progress = os.environ['HOWDAH_HERE'] + '/progress'\n"
UNTHROTTLED = """
import itertools, time
clock, calls = time.monotonic, itertools.count()
time.monotonic = lambda: clock() + 0.25 * next(calls)
"""
LIGHTNING = "class Callback:\n    pass\n"
TRAINER = """
from types import SimpleNamespace
callback = here.lightning_callback()
trainer = SimpleNamespace(
    is_global_zero=True, max_steps=-1, max_epochs=2, current_epoch=0, global_step=0, num_training_batches=4,
    log_every_n_steps=2, sanity_checking=True, callback_metrics={"val_loss": 7.0},
)
callback.on_validation_batch_end(trainer, None, None, None, 0)
callback.on_validation_epoch_end(trainer, None)
trainer.sanity_checking = False
for epoch in range(2):
    trainer.current_epoch, trainer.callback_metrics = epoch, {}
    for batch in range(4):
        trainer.global_step += 1
        trainer.callback_metrics["loss"] = 1.0 / trainer.global_step
        callback.on_train_batch_end(trainer, None, None, None, batch)
    print(open(here_progress).read().strip(), flush=True)
    trainer.callback_metrics["val_loss"] = 2.0
    callback.on_validation_epoch_end(trainer, None)
    callback.on_train_epoch_end(trainer, None)
callback.on_train_end(trainer, None)
trainer.is_global_zero = False
callback.on_train_batch_end(trainer, None, None, None, 0)
print(open(here_progress).read().strip())
"""


@pytest.fixture
def libraries(tmp_path: Path) -> str:
    packages = tmp_path / "libraries"
    for name, text in (("keras", KERAS), ("pytorch_lightning", LIGHTNING)):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(text)
    return f"import sys; sys.path.insert(0, {str(packages)!r})\n"


def points(job: Job) -> dict[str, list[tuple[int | None, float | None]]]:
    metrics = job.inside(lambda master: dict(master.log.view.tasks[TaskId("worker", 0)].metrics))
    return {name: [(point.step, point.value) for point in found] for name, found in metrics.items()}


def test_keras_reports_batches_and_epochs(job: Job, libraries: str) -> None:
    assert job.run(0, libraries + PLACE + UNTHROTTLED + FIT).split() == ["0.500000", "1.000000", "1.000000"]
    assert points(job) == {"loss": [(1, 0.5), (2, 0.5)]}


def test_lightning_reports_what_has_changed(job: Job, libraries: str) -> None:
    assert job.run(0, libraries + PLACE + UNTHROTTLED + TRAINER).split() == ["0.500000", "1.000000", "1.000000"]
    assert points(job) == {"loss": [(2, 1 / 2), (4, 1 / 4), (6, 1 / 6), (8, 1 / 8)], "val_loss": [(4, 2.0)]}


def test_a_library_that_is_missing_is_told_in_one_line(job: Job) -> None:
    for name, library, module in (("keras", "Keras", "keras"), ("lightning", "Lightning", "lightning")):
        hidden = "import sys; sys.modules.update({'keras': None, 'lightning': None, 'pytorch_lightning': None})\n"
        line = problem(job.start(0, f"{hidden}here.{name}_callback()"))
        assert line.startswith(
            f"howdah.program.task_identity.HereError: here.{name}_callback(): {library} can't be imported here: "
        )
        assert module in line
