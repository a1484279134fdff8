"""Makes the values of `submit --grid`: one job for each combination, none of which may be in another's way.

The rule: jobs of a grid run at the same time, so that each writes to a place of its own.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from howdah.errors import Mistake, SpecError
from howdah.spec import JobSpec

MAX_JOBS = 1000
MAX_TAG = 100
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")

Grid = Mapping[str, Sequence[str]]
"""The values of each name, in the order in which the names were given."""


def parse(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the grid of texts such as `lr=0.1,0.01` and `seed=1..4`; a name that is there twice has all its values.

    Raises:
        SpecError: a text is none, or the grid has more than MAX_JOBS combinations.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        if not separator or not name or not all(values.split(",")):
            raise SpecError.at("--grid", f"is {text!r}, must be NAME=VALUE,VALUE or NAME=FIRST..LAST")
        for value in values.split(","):
            found.setdefault(name, []).extend(_values(text, value))
    count = 1
    for values_of_name in found.values():
        count *= len(values_of_name)
    if count > MAX_JOBS:
        raise SpecError.at("--grid", f"has {count} combinations, at most {MAX_JOBS} jobs are possible")
    return found


def _values(text: str, value: str) -> Sequence[str]:
    bounds = _RANGE.fullmatch(value)
    if bounds is None:
        return [value]
    first, last = int(bounds[1]), int(bounds[2])
    if last - first not in range(MAX_JOBS):
        raise SpecError.at(
            "--grid", f"is {text!r}: a range goes up from its first number, to at most {MAX_JOBS} numbers"
        )
    return [str(number) for number in range(first, last + 1)]


def combinations(grid: Grid) -> Iterator[dict[str, str]]:
    """Yield the values of each job, the last name's changing first."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def tags(group: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tags of a job: the grid's own, and each value that can be one."""
    texts = (f"{name}={value}" for name, value in values.items())
    return (group, *(text for text in texts if len(text) <= MAX_TAG and text.isascii() and text.isprintable()))


def check(jobs: Sequence[JobSpec], grid: Grid) -> None:
    """Raise SpecError if two of the jobs are the same, or write to the same place."""
    names = " and ".join(f"${{{name}}}" for name, values in grid.items() if len(values) > 1)
    if len({repr(job) for job in jobs}) < len(jobs):
        raise SpecError.at(
            "--grid", f"makes the same job twice: give each name different values, and write {names} into the job"
        )
    written = Counter(place for job in jobs for place in _written(job).values())
    places = {place: key for job in jobs for key, place in _written(job).items()}
    problem = f"is the same for several jobs of the grid: write {names} into it"
    if keys := dict.fromkeys(key for place, key in places.items() if written[place] > 1):
        raise SpecError([Mistake(key, problem) for key in keys])


def _written(job: JobSpec) -> dict[str, str]:
    """Return the places to which a job writes, by their keys."""
    found = {f"outputs.{number}.path": output.path for number, output in enumerate(job.outputs)}
    return found | ({"checkpoint.path": job.checkpoint.path} if job.checkpoint.path else {})
