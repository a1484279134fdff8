"""Cuts the files of an input into splits when the job is submitted, because this may read the files, for which a master
has no time. `howdah.inputs.streaming.split_assignment` assigns the splits to tasks later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from howdah.errors import Mistake, SpecError, StagingError
from howdah.inputs import assignment, formats
from howdah.inputs.streaming.split_assignment import all_splits, shares
from howdah.spec.job import Input, JobSpec, Output
from howdah.spec.staged import StagedInput
from howdah.spec.task import TaskId
from howdah.spec.validation import OWN_FORMAT
from howdah.storage.factory import filesystem
from howdah.storage.hdfs.block_locations import Blocks, blocks_of

MIN_SHUFFLED = 8
"""The least number of splits of a task if the input is shuffled: with fewer splits the order would be close to that of
the files."""
MIN_BYTES = 1 << 20
"""The least size to which splits are reduced only because the input is shuffled."""


def plan_splits(
    number: int, job: JobSpec, entry: Input, staged: StagedInput, conf_dir: str = ""
) -> tuple[StagedInput, list[Mistake]]:
    """Return the job's input `number`, cut in the same way for each group of tasks, and the mistakes in it.

    Raises:
        EngineUnavailable: its file system does not answer.
    """
    place = f"inputs.{number}"
    if mistakes := format_mistakes(place, entry):
        return staged, mistakes
    groups = {tuple(assignment.sharing_tasks(job, entry.roles, role)) for role in job.roles}
    try:
        blocks = blocks_of(staged.files, conf_dir)
        found = cut_input(entry, staged, max(map(len, groups), default=1), blocks, conf_dir)
    except StagingError as error:
        return staged, [Mistake(f"{place}.path", str(error))]
    return found, list(_idle_task_mistakes(place, entry, found, groups))


def format_mistakes(place: str, entry: Input | Output) -> list[Mistake]:
    """Return the mistakes in a format and its options. A user's own format may be importable only on the nodes."""
    if OWN_FORMAT.fullmatch(entry.format):
        return []
    lines = formats.check(entry.format, entry.options, writing=isinstance(entry, Output))
    return [Mistake(f"{place}.{field}", problem) for field, _, problem in (line.partition(": ") for line in lines)]


def _idle_task_mistakes(
    place: str, entry: Input, staged: StagedInput, groups: Iterable[tuple[TaskId, ...]]
) -> Iterator[Mistake]:
    """Yield a mistake for each group that has a task without data, unless the job permits it: such a task trains
    nothing and may block the others."""
    splits = all_splits(staged)
    for tasks in groups:
        first = 1 if entry.chief == 0 and len(tasks) > 1 else 0
        parts = zip(tasks, shares(entry, splits, len(tasks)), strict=True)
        idle = [task for task, part in list(parts)[first:] if not part]
        count = "1 split" if len(splits) == 1 else f"{len(splits)} splits"
        if splits and idle and not entry.allow_empty:
            yield Mistake(
                f"{place}.share",
                f"has {count} for {len(tasks)} tasks: {idle[0]} would have none. Start fewer tasks, give all"
                " to each with `share: all`, or allow it with `allow_empty: true`",
            )


def cut_input(
    entry: Input, staged: StagedInput, tasks: int, blocks: Mapping[str, Blocks], conf_dir: str = ""
) -> StagedInput:
    """Return `staged` with its files cut for a group of `tasks`; `blocks` are the known blocks of some files, by URI.

    Raises:
        StagingError: a file whose content must be read cannot be read, or does not fit its format.
    """
    reader = _reader(entry)
    wanted = _wanted_bytes(entry, sum(file.size for file in staged.files), tasks)
    host_numbers: dict[str, int] = {}
    files = []
    for file in staged.files:
        located = blocks.get(file.uri, Blocks())
        follows_blocks = 0 < located.size <= wanted
        fs = filesystem(file.uri, conf_dir)
        splits = reader.splits(fs, file.uri, file.size, located.size, 0 if follows_blocks else wanted) if reader else []
        starts = [split.start for split in splits] or [0]
        where = []
        for start in starts if located.hosts else ():
            block = start // located.size if located.size else 0
            hosts = located.hosts[block] if block < len(located.hosts) else ()
            where.append(tuple(host_numbers.setdefault(host, len(host_numbers)) for host in hosts))
        files.append(replace(file, cuts=tuple(starts[1:]), where=tuple(where)))
    return replace(staged, files=tuple(files), hosts=tuple(host_numbers))


def _reader(entry: Input) -> formats.RecordReader | None:
    """Return the input's reader; None for a user's own reader that cannot be imported here. The nodes may have it, and
    get whole files."""
    try:
        return formats.reader(entry.format, entry.options)
    except SpecError:
        if OWN_FORMAT.fullmatch(entry.format):
            return None
        raise


def _wanted_bytes(entry: Input, size: int, tasks: int) -> int:
    """Return the size of a split that gives each task its part."""
    part = max(1, -(-size // max(1, tasks))) if entry.share != "all" else max(1, size)
    return min(part, max(MIN_BYTES, part // MIN_SHUFFLED)) if entry.shuffle else part
