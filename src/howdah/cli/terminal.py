"""Shows jobs on a terminal: a live table, plain lines for logs and pipes, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO
from unicodedata import east_asian_width

import click

from howdah.api.hints import hints
from howdah.api.serializers import masked_record, tracker_runs
from howdah.cli.i18n import _, translate_stored
from howdah.cli.progress_lines import TaskProgressLines, event_line
from howdah.client.follow import Update
from howdah.logs.output_text import newest, readable
from howdah.spec import JobReport, State, TaskId
from howdah.spec.advice import advice
from howdah.spec.codec import encode, to_json
from howdah.spec.eta import eta
from howdah.spec.event_sentences import mib
from howdah.spec.events import Ended, Event
from howdah.spec.view import JobView, TaskView

ROLE_STATES = ("Role", "Tasks", "State")
BESIDE_ROWS = 4
"""Rows of a terminal that the table of the tasks leaves to other lines."""
BAR_S, MAX_BARS = 2.0, 8
"""Seconds between two prints of a line that a program overwrites again and again; and the most such lines below the
table."""
MAX_WAITS = 20
"""The most reasons for waiting that are remembered, so that they are not printed again."""
MAX_TRACKER_LINES = 10
TASK_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_magenta")
TASK_COLUMNS = ("Task", "State", "Attempt", "Host", "Progress", "Memory", "Peak", "CPU", "Exit")
_COLOURS = {State.RUNNING: "cyan", State.SUCCEEDED: "green", State.FAILED: "red", State.CANCELLED: "yellow"}


class Plain:
    """Prints lines, for logs and pipes.

    A line that a program overwrites again and again, such as a progress bar, is printed every `BAR_S` seconds in its
    present state.
    """

    def __init__(self, out: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self._clock = out, clock
        self._rest: dict[tuple[TaskId, str], bytes] = {}
        self._bars: dict[tuple[TaskId, str], tuple[float, str]] = {}
        self._waits: deque[str] = deque(maxlen=MAX_WAITS)
        self._progress = TaskProgressLines(event_line)

    def close(self) -> None:
        """Stop showing the job."""

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        for moment, text in self._progress.rest():
            self._print(f"{_clock(moment)} {text}")
        for (task, stream), rest in self._rest.items():
            if rest:
                self._line(task, stream, rest)
        self._rest.clear()

    def show(self, update: Update) -> None:
        """Print the news; the output of a program is printed before its end."""
        ends = next((n for n, event in enumerate(update.events) if isinstance(event, Ended)), len(update.events))
        self._show_events(update.events[:ends], update)
        if not update.events and not update.view.tasks:
            for text in (update.report.diagnostics, *update.reasons):
                self._show_wait(text)
        for task, stream, data in update.logs:
            self._feed(task, stream, data)
        if ends < len(update.events):
            self._show_events(update.events[ends:], update)
        for (task, stream), rest in self._rest.items():
            if b"\r" in rest:
                self._show_bar(task, stream, rest)

    def _show_events(self, events: list[Event], update: Update) -> None:
        for moment, text in self._progress.lines(events, len(update.view.tasks)):
            self._print(f"{_clock(moment)} {text}")

    def _show_wait(self, text: str) -> None:
        """Print why the job waits for its master, once."""
        if text and text not in self._waits:
            self._waits.append(text)
            self._print(f"{_clock(time.time())} {translate_stored(text)}")

    def _feed(self, task: TaskId, stream: str, data: bytes) -> None:
        *lines, rest = (self._rest.get((task, stream), b"") + data).split(b"\n")
        if b"\r" in rest:
            rest = b"\r" + newest(rest) + b"\r" * rest.endswith(b"\r")
        self._rest[task, stream] = rest
        for line in lines:
            self._line(task, stream, line)

    def _show_bar(self, task: TaskId, stream: str, rest: bytes) -> None:
        text, now = shown_line(rest), self._clock()
        shown_at, shown = self._bars.get((task, stream), (-BAR_S, ""))
        if text.strip() and text != shown and now - shown_at >= BAR_S:
            self._bars[task, stream] = now, text
            self._print(self._of_task(task, stream, text))

    def _line(self, task: TaskId, stream: str, line: bytes) -> None:
        text = shown_line(line)
        bar = self._bars.pop((task, stream), None)
        if bar is None or bar[1] != text:
            self._print(self._of_task(task, stream, text))

    def _of_task(self, task: TaskId, stream: str, text: str) -> str:
        return f"{task} {'|' if stream == 'stdout' else '!'} {text}"

    def _print(self, text: str) -> None:
        if "\x1b" in text:
            click.echo(text, file=self.out)  # `echo` takes twice as long, and is needed only for colours
        else:
            print(text, file=self.out, flush=True)


def shown_line(line: bytes) -> str:
    """Return a line as text; `click` drops its colours if they are not shown."""
    return readable(line, not os.environ.get("NO_COLOR"))


def coloured_task(task: TaskId) -> str:
    """Return a task in a colour that its neighbours do not have."""
    return click.style(task, fg=_colour_of(task))


def styled_heading(name: str) -> str:
    """Return a heading: bold, and in the colour of its task if it begins with one."""
    colour = None
    with contextlib.suppress(ValueError):
        colour = _colour_of(TaskId.parse(name.partition(" ")[0]))
    return click.style(f"==> {name} <==", bold=True, fg=colour)


def _colour_of(task: TaskId) -> str:
    return TASK_COLOURS[(sum(map(ord, task.role)) + task.index) % len(TASK_COLOURS)]


class Json:
    """Prints one JSON object a line: every event, and log lines as they come."""

    def close(self) -> None:
        """Stop showing the job."""

    def __enter__(self) -> Json:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, update: Update) -> None:
        """Print what is new."""
        for event in update.events:
            record = {"kind": type(event).__name__, **encode(event)}
            print(json.dumps(masked_record(record), separators=(",", ":")), flush=True)
        for task, stream, data in update.logs:
            said = {"kind": "Log", "task": str(task), "stream": stream, "text": data.decode("utf-8", "replace")}
            print(to_json(said), flush=True)


class Live(Plain):
    """Shows a table of the tasks that stays at the bottom, with the lines above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        super().__init__()
        self._console = Console()
        self._live = RichLive(console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Live:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__()
        self._live.__exit__(None, None, None)

    def show(self, update: Update) -> None:
        """Print the news and draw the table again, with the overwritten lines below it."""
        from rich.console import Group
        from rich.text import Text

        super().show(update)
        if update.view.tasks:
            table = task_table(update.view, max(self._console.height - BESIDE_ROWS, BESIDE_ROWS))
            bars = [self._of_task(*where, shown_line(rest)) for where, rest in self._rest.items() if b"\r" in rest]
            self._live.update(Group(table, *(Text.from_ansi(bar, no_wrap=True) for bar in bars[:MAX_BARS])))

    def _show_bar(self, task: TaskId, stream: str, rest: bytes) -> None:
        """Print nothing, because the table shows the bar."""

    def _of_task(self, task: TaskId, stream: str, text: str) -> str:
        return super()._of_task(task, stream, text).replace(str(task), coloured_task(task), 1)

    def _print(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text.from_ansi(text), soft_wrap=True)


def task_table(view: JobView, max_tasks: int) -> Any:
    """Return the tasks as a rich table; if there are more than `max_tasks`, with a row for each role."""
    from rich.table import Column, Table
    from rich.text import Text

    if len(view.tasks) > max_tasks:
        columns = [Column(title, no_wrap=True) for title in map(_, ROLE_STATES)]
        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for counted in role_rows(view):
            table.add_row(*map(Text, counted))
        return table
    widths = [max(len(str(task)) for task in view.tasks), max(map(len, State)), *[0] * (len(TASK_COLUMNS) - 2)]
    titles = zip(map(_, TASK_COLUMNS), widths, strict=True)
    columns = [Column(title, no_wrap=True, min_width=width) for title, width in titles]
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for task in view.tasks.values():
        colour = _COLOURS.get(task.state, "")
        state, *cells = row(task)
        # Not as markup: lines printed above the table turn markup off, for both.
        table.add_row(*(Text(cell, colour if cell is state else "") for cell in (str(task.id), state, *cells)))
    return table


def role_rows(view: JobView) -> Iterator[tuple[str, str, str]]:
    """Yield each role with the number of its tasks, and the number of tasks in each state."""
    for role in dict.fromkeys(task.role for task in view.tasks):
        states = Counter(row(task)[0] for task in view.tasks.values() if task.id.role == role)
        said = ", ".join(f"{count} {state}" for state, count in states.most_common())
        yield role, str(states.total()), said


def row(task: TaskView) -> tuple[str, ...]:
    """Return state, attempt, host, progress, memory, peak, CPU and exit of one task, as text."""
    usage = task.usage
    return (
        phase(task) if task.state is State.PENDING else task.state.value,
        str(task.tries or task.attempt),
        task.host or task.node,
        "" if usage.progress is None else f"{usage.progress:.0%}",
        f"{usage.memory_mib:.0f} MiB" if usage.memory_mib else "",
        f"{usage.peak_mib:.0f} MiB" if usage.peak_mib else "",
        f"{usage.cpu:.2f}" if task.started else "",
        translate_stored(task.exit or task.notice or task.straggler),
    )


def phase(task: TaskView) -> str:
    """Return what a task that does not run yet is doing; while its files are fetched, how many of their bytes have
    come."""
    if task.phase != "localising" or not task.data_total_bytes:
        return task.phase
    return f"{task.phase} {mib(task.data_bytes)}/{mib(task.data_total_bytes)} MiB"


def task_lines(tasks: Iterable[TaskView]) -> Iterator[str]:
    """Return these tasks as plain lines, with a heading."""
    return columns([tuple(map(_, TASK_COLUMNS)), *((str(task.id), *row(task)) for task in tasks)])


def stream_lines(view: JobView) -> Iterator[str]:
    """Yield how many bytes the input streams gave to the tasks, and how many of them were read from the node itself."""
    given = sum(task.usage.streamed_bytes for task in view.tasks.values())
    near = sum(task.usage.local_bytes for task in view.tasks.values())
    if given:
        size, share = f"{given / 2**20:.1f}", f"{near / given:.0%}"
        yield _("streamed: {size} MiB, {share} of it on the task's own node", size=size, share=share)


def python_lines(view: JobView) -> Iterator[str]:
    """Yield the Python that runs the master and the executors, and the Python that the programs find."""
    found = {
        "master": {view.python},
        "executors": {task.python for task in view.tasks.values()},
        "programs": {task.program for task in view.tasks.values()},
    }
    parts = [f"{who} {', '.join(sorted(filter(None, which)))}" for who, which in found.items() if any(which)]
    if parts:
        yield f"python: {'; '.join(parts)}"


def tracker_lines(view: JobView) -> Iterator[str]:
    """Yield the addresses of the first runs of experiment trackers."""
    runs = list(tracker_runs(view))
    for run in runs[:MAX_TRACKER_LINES]:
        yield _("{task} is tracked by {tracker}: {url}", task=run["task"], tracker=run["tracker"], url=run["url"])
    if len(runs) > MAX_TRACKER_LINES:
        yield _("and {count} more; `howdah status --json` has all", count=len(runs) - MAX_TRACKER_LINES)


def hint_lines(view: JobView) -> Iterator[str]:
    """Yield hints for the next submission, and the expected end of a running job."""
    left = eta(view, time.time())
    if left is not None:
        yield _("done in about {time}", time=_duration_text(left))
    for hint in hints(view):
        yield _(hint.template, **hint.values)


def _duration_text(seconds: float) -> str:
    """Return a duration in the usual form for people, with its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def verdict(view: JobView) -> Iterator[str]:
    """Yield how the job ended: the state, why, and the last lines of the task that failed first."""
    outcome = view.outcome
    if outcome is None:
        return
    state = click.style(outcome.state.value, fg=_COLOURS.get(outcome.state), bold=True)
    why = f": {translate_stored(outcome.diagnostics)}" if outcome.diagnostics else ""
    yield _("{id} {state}", id=view.id, state=state) + why
    if outcome.first is not None and outcome.exit is not None and outcome.exit.lines:
        yield _("last lines of {task}:", task=outcome.first)
        yield from (f"    {line}" for line in outcome.exit.lines)
    if outcome.exit is not None and (text := advice(outcome.exit.cause)):
        yield _("what to do: {advice}", advice=translate_stored(text))
    if outcome.first is not None:
        yield _("full output: howdah logs {id} {task}", id=view.id, task=outcome.first)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that prints a single result the option `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object.")(command)


def print_result(text: str, record: Mapping[str, object], as_json: bool) -> None:
    """Print the result of a command, as text or as JSON."""
    click.echo(to_json(record) if as_json else text)


def styled_state(state: State) -> str:
    """Return a state in its colour; `click` drops colours where they are not shown."""
    return click.style(state.value, fg=_COLOURS[state]) if state in _COLOURS else state.value


def place_text(engine: str, profile: str) -> str:
    """Return the name of a cluster in messages: the engine, the profile that leads to it, or both."""
    if engine and profile:
        return _("{engine}, profile {profile}", engine=engine, profile=profile)
    return engine or _("profile {profile}", profile=profile)


def report_json(report: JobReport) -> dict[str, Any]:
    """Return a report for `--json`, with every field."""
    return {name: encode(getattr(report, name)) for name in report.__dataclass_fields__}


def columns(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows as aligned lines; cells may have colours."""
    widths = [max(_width(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    for cells in rows:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Return the width of a text on a terminal: a Chinese character takes two columns, a colour none."""
    text = click.unstyle(text) if "\x1b" in text else text
    return len(text) if text.isascii() else sum(1 + (east_asian_width(char) in "WF") for char in text)


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))
