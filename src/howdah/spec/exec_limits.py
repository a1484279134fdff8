"""The limits of Linux for starting a program (execve): the length of each argument and variable, and of all
together."""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence, Tuple, Union

from howdah.errors import Mistake
from howdah.spec.job import JobSpec

MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""The most bytes of one argument, or of one variable with its name and `=` (MAX_ARG_STRLEN, less the final byte)."""
MAX_TOTAL_BYTES = 2 * 1024 * 1024 - 256 * 1024
"""The most bytes of all arguments and variables: a quarter of the usual stack, less what the node and howdah add."""
_POINTER = 8


def mistakes(job: JobSpec) -> Iterator[Mistake]:
    """Find what no node could start."""
    yield from _variables("env", job.env)
    for name, role in job.roles.items():
        place = f"roles.{name}"
        parts = list(_arguments(f"{place}.command", role.command))
        for part, text in parts:
            yield from _too_long(part, _length(text), "put it into a file, and run that")
        yield from _variables(f"{place}.env", role.env)
        variables = [f"{key}={value}" for key, value in {**job.env, **role.env}.items()]
        total = sum(_length(text) + 1 + _POINTER for text in (*(text for _, text in parts), *variables))
        if total > MAX_TOTAL_BYTES:
            what = f"and its variables need {total} bytes together, and Linux takes about {MAX_TOTAL_BYTES}"
            yield Mistake(f"{place}.command", f"{what}: put the arguments into a file")


def _arguments(place: str, command: Union[str, Sequence[str]]) -> Iterator[Tuple[str, str]]:
    """Yield the texts that are arguments, each with its place."""
    if isinstance(command, str):
        yield place, command
    else:
        yield from ((f"{place}.{number}", part) for number, part in enumerate(command))


def _variables(place: str, env: Mapping[str, str]) -> Iterator[Mistake]:
    for name, value in env.items():
        yield from _too_long(f"{place}.{name}", _length(f"{name}={value}"), "put it into a file, and name that")


def _too_long(place: str, length: int, advice: str) -> Iterator[Mistake]:
    if length > MAX_ARGUMENT_BYTES:
        yield Mistake(place, f"is {length} bytes long, and Linux takes at most {MAX_ARGUMENT_BYTES}: {advice}")


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
