"""What a check of `howdah doctor` finds: a state, what it was about, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from howdah.errors import HowdahError
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of `howdah doctor`."""

    state: str
    """`ok`; `warn`: jobs run, but something is missing; `fail`: jobs do not run."""
    name: str
    """What was checked."""
    text: str
    """What was found."""
    advice: str = ""
    """What to do about it."""


def ok(name: str, text: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding("ok", name, text)


def warn(name: str, text: str, advice: str) -> Finding:
    """Return a finding about something that is missing although jobs run."""
    return Finding("warn", name, text, advice)


def fail(name: str, text: str, advice: str) -> Finding:
    """Return a finding that keeps jobs from running."""
    return Finding("fail", name, text, advice)


def guarded(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings of `check`; an error that it raises becomes a finding."""
    try:
        yield from check()
    except HowdahError as error:
        yield fail(name, str(error), "")
    except OSError as error:
        yield fail(name, f"{error.filename or ''} {error.strerror or error}".strip(), "")
