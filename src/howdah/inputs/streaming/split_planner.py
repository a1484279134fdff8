"""An input to be streamed is cut into splits when the job is submitted: that may mean looking into the files, which a
master has no time for. What is dealt to whom is decided later, by `howdah.inputs.streaming.split_assignment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

ROUNDS = 8
"""Shuffled splits are cut so small that a task has this many, for their order to differ much from the files'."""
SMALLEST = 1 << 20
"""But none for that reason alone smaller than this."""


def prepared(
    number: int, job: JobSpec, entry: Input, staged: StagedInput, conf_dir: str = ""
) -> tuple[StagedInput, list[Mistake]]:
    """The job's input `number`, cut for each row of tasks alike, and what is wrong with it.

    Raises:
        EngineUnavailable: its file system does not answer.
    """
    place = f"inputs.{number}"
    if mistakes := format_mistakes(place, entry):
        return staged, mistakes
    rows = {tuple(assignment.sharing_tasks(job, entry.roles, role)) for role in job.roles}
    try:
        done = cut(entry, staged, max(map(len, rows), default=1), blocks_of(staged.files, conf_dir), conf_dir)
    except StagingError as error:
        return staged, [Mistake(f"{place}.path", str(error))]
    return done, list(_without(place, entry, done, rows))


def format_mistakes(place: str, entry: Input | Output) -> list[Mistake]:
    """What is wrong with its format and options. Somebody's own may be importable on the nodes only."""
    if OWN_FORMAT.fullmatch(entry.format):
        return []
    lines = formats.check(entry.format, entry.options, writing=isinstance(entry, Output))
    parts = (line.partition(": ") for line in lines)
    return [Mistake(f"{place}.{where}", problem) for where, _, problem in parts]


def _without(place: str, entry: Input, staged: StagedInput, rows: Iterable[tuple[TaskId, ...]]) -> Iterator[Mistake]:
    """A task without data trains nothing, and may keep the others waiting: whoever wants that says so."""
    splits = all_splits(staged)
    for row in rows:
        dealt = shares(entry, splits, len(row))
        first = 1 if entry.chief == 0 and len(row) > 1 else 0
        idle = [task for task, hand in list(zip(row, dealt, strict=True))[first:] if not hand]
        count = "1 split" if len(splits) == 1 else f"{len(splits)} splits"
        if splits and idle and not entry.allow_empty:
            yield Mistake(
                f"{place}.share",
                f"has {count} for {len(row)} tasks: {idle[0]} would have none. Start fewer tasks, give all"
                " to each with `share: all`, or allow it with `allow_empty: true`",
            )


def cut(entry: Input, staged: StagedInput, tasks: int, blocks: Mapping[str, Blocks], conf_dir: str = "") -> StagedInput:
    """`staged` with its files cut for a row of `tasks`; `blocks` are known of some files, by URI.

    Raises:
        StagingError: a file whose content must be seen can't be read, or is not what its format says.
    """
    reader = _reader(entry)
    wanted = _wanted(entry, sum(file.size for file in staged.files), tasks)
    names: dict[str, int] = {}
    files = []
    for file in staged.files:
        lies = blocks.get(file.uri, Blocks())
        block = lies.size if 0 < lies.size <= wanted else 0
        fs = filesystem(file.uri, conf_dir)
        splits = reader.splits(fs, file.uri, file.size, lies.size, 0 if block else wanted) if reader else []
        starts = [split.start for split in splits] or [0]
        where = tuple(_numbers(_hosts(lies, start), names) for start in starts) if lies.hosts else ()
        files.append(replace(file, cuts=tuple(starts[1:]), where=where))
    return replace(staged, files=tuple(files), hosts=tuple(names))


def _reader(entry: Input) -> formats.RecordReader | None:
    """None for somebody's own that can't be imported here: the nodes may have it, and get whole files."""
    try:
        return formats.reader(entry.format, entry.options)
    except SpecError:
        if OWN_FORMAT.fullmatch(entry.format):
            return None
        raise


def _wanted(entry: Input, whole: int, tasks: int) -> int:
    """Bytes of a split that give each task its part."""
    each = max(1, -(-whole // max(1, tasks))) if entry.share != "all" else max(1, whole)
    return min(each, max(SMALLEST, each // ROUNDS)) if entry.shuffle else each


def _hosts(lies: Blocks, start: int) -> Sequence[str]:
    number = start // lies.size if lies.size else 0
    return lies.hosts[number] if number < len(lies.hosts) else ()


def _numbers(hosts: Sequence[str], names: dict[str, int]) -> tuple[int, ...]:
    """Places in the table of names, which grows."""
    return tuple(names.setdefault(host, len(names)) for host in hosts)
