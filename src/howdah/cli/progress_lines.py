"""Shows the start and the end of many tasks in few lines.

For a job of 20 tasks, at most one line a second says which tasks have a container, have joined, run, and have
succeeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from howdah.cli.i18n import _, translate_stored
from howdah.spec import TaskId
from howdah.spec.event_sentences import mib, sentence
from howdah.spec.events import Ended, Event, Joined, Launched, Started

FEW = 8
"""The number of tasks up to which each event gets a line of its own, as it comes."""
HOLD_S = 1.0
MAX_NODES = 3

Kind = type[Launched] | type[Joined] | type[Started] | type[Ended]


def event_line(event: Event) -> str:
    """Return one line about an event in the user's language; "" for one that people need not see."""
    return translate_stored(sentence(event))


class TaskProgressLines:
    """Turns events into lines. `sentence` returns the line of one event. Events of the same kind from many tasks are
    held for a second, or until another event comes, and are then shown as one line."""

    def __init__(self, sentence: Callable[[Event], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._sentence, self._clock = sentence, clock
        self._held: dict[Kind, list[Launched | Joined | Started | Ended]] = {}
        self._since = 0.0

    def lines(self, events: Iterable[Event], tasks: int) -> Iterator[tuple[float, str]]:
        """Yield times and lines of `events`, and of events that were held long enough; the job has `tasks` tasks."""
        for event in events:
            kind = _kind(event) if tasks > FEW else None
            if kind is not None:
                if not self._held:
                    self._since = self._clock()
                self._held.setdefault(kind, []).append(event)  # type: ignore[arg-type]
                continue
            text = self._sentence(event)
            if text:
                yield from self.rest()
                yield event.time, text
        if self._held and self._clock() - self._since >= HOLD_S:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[float, str]]:
        """Yield the lines of all events that are held."""
        held, self._held = self._held, {}
        for kind, events in held.items():
            text = self._sentence(events[0]) if len(events) == 1 else _line_of_events(kind, events)
            yield events[-1].time, text


def _kind(event: Event) -> Kind | None:
    """Return the kind of a common event; None for an event that gets a line of its own."""
    if isinstance(event, Launched):
        return Launched if event.giver in (None, event.task) else None
    if isinstance(event, Ended):
        return Ended if event.exit.ok else None
    return next((kind for kind in (Joined, Started) if isinstance(event, kind)), None)


def _line_of_events(kind: Kind, events: Sequence[Launched | Joined | Started | Ended]) -> str:
    tasks = task_ranges(event.task for event in events)
    if kind is Launched:
        nodes = (event.container.node for event in events if isinstance(event, Launched))
        return _("{tasks} have containers on {nodes}", tasks=tasks, nodes=_nodes(nodes))
    if kind is Started:
        return _("{tasks} run", tasks=tasks)
    if kind is Ended:
        return _("{tasks} ended well", tasks=tasks)
    joined = [event for event in events if isinstance(event, Joined)]
    size = sum(event.data_bytes for event in joined)
    said = _("{tasks} joined on {nodes}", tasks=tasks, nodes=_nodes(event.host for event in joined))
    if not size:
        return said
    files, seconds = sum(event.data_files for event in joined), max(event.data_seconds for event in joined)
    return f"{said}: " + _(
        "{files} files, {size} MiB in {seconds} s", files=files, size=mib(size), seconds=f"{seconds:.1f}"
    )


def _nodes(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    return ", ".join(found) if len(found) <= MAX_NODES else _("{count} nodes", count=len(found))


def task_ranges(tasks: Iterable[TaskId]) -> str:
    """Return the tasks in the form of options: `worker:0-7,9, ps:0`."""
    roles: dict[str, list[int]] = {}
    for task in tasks:
        roles.setdefault(task.role, []).append(task.index)
    return ", ".join(f"{role}:{','.join(_spans(sorted(set(found))))}" for role, found in roles.items())


def _spans(numbers: Sequence[int]) -> Iterator[str]:
    first = last = numbers[0]
    for number in (*numbers[1:], -1):
        if number != last + 1:
            yield f"{first}-{last}" if last > first else f"{first}"
            first = number
        last = number
