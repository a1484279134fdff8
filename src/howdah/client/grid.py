"""Makes the values of `submit --grid`: one job for each combination, none of which may be in another's way.

The rule: jobs of a grid run at the same time, so that each writes to a place of its own.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from howdah.errors import Mistake, SpecError
from howdah.spec import JobSpec, uris
from howdah.staging.replacement import KeptPath, display_uri, find_shared_places, list_written_places

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


def check(jobs: Sequence[JobSpec], grid: Grid, variables: Collection[str]) -> None:
    """Raise SpecError if two of the jobs are the same, or write to the same place. Of the names of the grid those in
    `variables` can be written into a job."""
    names = " and ".join(f"${{{name}}}" for name, values in grid.items() if len(values) > 1 and name in variables)
    if len({repr(job) for job in jobs}) < len(jobs):
        if not names:
            raise SpecError.at("--grid", "makes the same job twice: give each name different values")
        raise SpecError.at(
            "--grid", f"makes the same job twice: give each name different values, and write {names} into the job"
        )
    written = Counter(place for job in jobs for place in set(_named_places(job).values()))
    keys = dict.fromkeys(key for job in jobs for key, place in _named_places(job).items() if written[place] > 1)
    problem = "is the same for several jobs of the grid: vary its path, too, by a variable under `vars`"
    if names:
        problem = f"is the same for several jobs of the grid: write {names} into it"
    if keys:
        raise SpecError([Mistake(key, problem) for key in keys])


def check_places(jobs: Sequence[JobSpec], conf_dir: str) -> None:
    """Raise SpecError if a place to which one of the jobs writes is, holds or lies in a place of another. The jobs are
    staged: their places are absolute, and two names of one place are found, too."""
    owners = [(number, place) for number, job in enumerate(jobs) for place in _staged_places(job)]
    first_at: dict[str, tuple[int, KeptPath]] = {}
    for number, place in owners:
        other, there = first_at.setdefault(uris.normalize(place.uri), (number, place))
        if other != number:
            raise _is_shared(place, there)
    numbers = {id(place): number for number, place in owners}
    for one, other_place in find_shared_places([place for _, place in owners], conf_dir):
        if numbers[id(one)] != numbers[id(other_place)]:
            raise _is_shared(one, other_place)


def _is_shared(place: KeptPath, other: KeptPath) -> SpecError:
    path, there = display_uri(place.uri), display_uri(other.uri)
    return SpecError.at(
        place.what, f"is {path}, which is, holds or lies in {other.what} of another job of the grid ({there})"
    )


def _named_places(job: JobSpec) -> dict[str, str]:
    """Return the places to which a job writes, as it names them, by their keys."""
    found = {f"outputs.{number}.path": output.path for number, output in enumerate(job.outputs)}
    found |= {f"outputs.{number}.save.to": output.save.to for number, output in enumerate(job.outputs)}
    found |= {"checkpoint.path": job.checkpoint.path, "board.path": job.board.path}
    return {key: place for key, place in found.items() if place and not _is_of_each_job(key, place)}


def _staged_places(job: JobSpec) -> list[KeptPath]:
    found = {place.uri: place for place in list_written_places(job.outputs, job.checkpoint)}
    return list((found | {uri: KeptPath(key, uri) for key, uri in _named_places(job).items()}).values())


def _is_of_each_job(key: str, place: str) -> bool:
    """Return whether the job's id is put into the place; it is percent-encoded in a URI of this machine's files."""
    return key == "board.path" and ("{job}" in place or "%7Bjob%7D" in place)
