"""Finds tasks that are out of line with their role: in CPU, GPU, or the rate of their progress or steps, over a while.

The measure is robust (median, and the median of the distances from it), so that one task does not move what it is
compared with. Where all tasks wait for each other in every step, the slow one works while the others wait: it stands
out by more CPU or GPU just as well as by less. The master does nothing about it: users see it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median

from howdah.master.state import GangState, TaskState
from howdah.spec import TaskId
from howdah.spec.events import Straggling

EVERY_S, SAMPLES, BATCH_TASKS = 5.0, 24, 200
MIN_SAMPLES, MIN_TASKS = 12, 3
"""A comparison needs a minute of a program, and two other tasks."""
SPREADS, SHARE = 6.0, 0.3
"""A task is out of line when it is more than SPREADS spreads of the others, and SHARE of the median, away from the
median."""
_SPREAD = 1.4826  # the spread of a normal distribution, from the median distance
_FLOORS = {"CPU (cores)": 0.25, "GPU (share)": 0.1}
PROGRESS, STEPS = "progress (% a minute)", "steps a minute"


class Stragglers:
    """Compares the tasks of each role. `steps(task)` is the latest step that the task's program reported, None when it
    reports none."""

    def __init__(self, steps: Callable[[TaskId], int | None] = lambda _: None) -> None:
        self._steps = steps
        self._samples: dict[tuple[TaskId, int], deque[Mapping[str, float]]] = {}
        self._reported: dict[TaskId, str] = {}
        self._due = 0.0

    def check(self, state: GangState, now: float) -> Iterator[Straggling | None]:
        """Yield the tasks that are out of line since now. None is a pause in which other work may run: the figures of
        ten thousand tasks take a tenth of a second."""
        if now < self._due:
            return
        self._due = now + EVERY_S
        running = [task for task in state.tasks.values() if task.live and task.started == task.epoch and task.epoch]
        alive = {(task.id, task.epoch) for task in running}
        for number, task in enumerate(running):
            if number % BATCH_TASKS == BATCH_TASKS - 1:
                yield None
            self._add_sample(task, now)
        self._samples = {key: one for key, one in self._samples.items() if key in alive}
        yield from self._changes(now)

    def _add_sample(self, task: TaskState, now: float) -> None:
        usage, steps = task.usage, self._steps(task.id)
        sample = {"time": now, "CPU (cores)": usage.cpu}
        shares = [gpu.use for gpu in usage.gpus if gpu.use is not None]
        if shares:
            sample["GPU (share)"] = fmean(shares)
        if usage.progress is not None:
            sample[PROGRESS] = usage.progress * 100
        if steps is not None:
            sample[STEPS] = steps
        self._samples.setdefault((task.id, task.epoch), deque(maxlen=SAMPLES)).append(sample)

    def _changes(self, now: float) -> Iterator[Straggling | None]:
        roles: dict[str, dict[TaskId, Mapping[str, float]]] = defaultdict(dict)
        for number, ((id_, _), samples) in enumerate(self._samples.items()):
            if number % BATCH_TASKS == BATCH_TASKS - 1:
                yield None
            if len(samples) >= MIN_SAMPLES:
                roles[id_.role][id_] = _means(samples)
        found: dict[TaskId, tuple[str, float, float]] = {}
        for means in roles.values():
            found |= out_of_line(means)
        for id_, (what, value, middle) in found.items():
            if self._reported.get(id_) != what:
                self._reported[id_] = what
                yield Straggling(now, task=id_, what=what, value=round(value, 2), median=round(middle, 2))
        for id_ in [id_ for id_ in self._reported if id_ not in found]:
            del self._reported[id_]
            yield Straggling(now, id_)


def _means(samples: deque[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of levels, and the rate per minute of counters."""
    first, last = samples[0], samples[-1]
    passed = max(1.0, last["time"] - first["time"]) / 60
    means: dict[str, float] = {}
    for what in last:
        if what in (PROGRESS, STEPS) and what in first:
            means[what] = (last[what] - first[what]) / passed
        elif what in _FLOORS:
            means[what] = fmean(sample[what] for sample in samples if what in sample)
    return means


def out_of_line(means: Mapping[TaskId, Mapping[str, float]]) -> dict[TaskId, tuple[str, float, float]]:
    """Return, for tasks of one role, the measurement that is out of line, the task's value and the median; a slow rate
    comes first."""
    found: dict[TaskId, tuple[str, float, float]] = {}
    for what in (STEPS, PROGRESS, *_FLOORS):
        values = {id_: each[what] for id_, each in means.items() if what in each}
        if len(values) < MIN_TASKS:
            continue
        middle = median(values.values())
        spread = _SPREAD * median(abs(value - middle) for value in values.values())
        limit = max(SPREADS * spread, SHARE * abs(middle), _FLOORS.get(what, 0.0))
        for id_, value in values.items():
            ahead = what in (STEPS, PROGRESS) and value > middle
            if abs(value - middle) > limit and not ahead:
                found.setdefault(id_, (what, value, middle))
    return found
