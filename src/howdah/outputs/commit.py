"""`python -m howdah.outputs.commit commit|discard`: moves an output to its place by one rename, or not at all.

The master runs this helper process (`howdah.wire.helper_main`). It can be run again after any interruption: every step
first checks whether it has been done. In an object store, whose renames are copies, a step that was begun is finished.

    <temporary>/<from>            what one attempt uploaded; `parts` names the attempts that count
    <temporary>/_commit/<to>      the attempts that count, under their tasks' names, and _SUCCESS
    <final>                       `_commit`, renamed; snapshots taken while the programs ran
                                  (`howdah.outputs.snapshot`) that are there already come with it
    <temporary>-replaced          what was at <final> before, when it is to be overwritten, until the commit is done
    <temporary>-removed           the same, if it is as a job had published it, and is removed where there is no trash
    <final>.replaced-<job>-<n>    what was -replaced, afterwards, if there is no trash; a long name of <final> is cut
    <failed>                      instead of <final>, when the job has failed and its output says `keep_failed`
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from howdah.checkpoints import directory_lock
from howdah.errors import HowdahError, Mistake, StagingError
from howdah.outputs import snapshot
from howdah.spec import uris
from howdah.spec.job import SUCCESS, JobSpec
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.storage import snapshot_places
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import MAX_NAME_BYTES, FileSystem, shorten
from howdah.storage.published import FAILED, begin_mark, complete_mark, is_as_published, is_published
from howdah.storage.retry import retry_until
from howdah.storage.trash import move_to_trash
from howdah.wire.helper_main import HelperReply, one_line, run_helper_main

_UNSEEN = (
    "a task has stored its files there, and this machine, where the master runs, does not see them: choose a directory "
    "that all machines of the job share"
)
_MAX_NUMBER_BYTES = 5
"""Room for a number after a name, such as `-2`."""


@dataclass(frozen=True)
class OutputCommit:
    """One output that is committed or discarded."""

    temporary: str
    """The directory with the attempts' parts."""
    final: str
    """Where the output appears."""
    overwrite: bool = False
    """Whether the output replaces what exists at `final`."""
    parts: tuple[tuple[str, str], ...] = ()
    """The parts that count: an attempt's own directory, and its name in the output ("" for the output itself)."""
    uploaded: tuple[str, ...] = ()
    """The directories of `parts` in which a task reports that it has stored its files."""
    snapshot_prefix: str = ""
    """The beginning of the names of the output's snapshots; "" if there are none."""
    unfinished: str = ""
    """The directory in which the snapshots were written."""
    failed: str = ""
    """Where the parts go when the job has failed and its output is kept; "" removes them."""

    @property
    def gathered(self) -> str:
        """Return the URI at which the uploaded files are gathered before the move."""
        return uris.join(self.temporary, "_commit")

    @property
    def replaced(self) -> str:
        """Return the URI at which the replaced output is kept until the commit is done."""
        return self.temporary.rstrip("/") + "-replaced"

    @property
    def removed(self) -> str:
        """Return the URI at which the replaced output is kept until the commit is done, if it contains only a job's
        work."""
        return self.temporary.rstrip("/") + "-removed"

    @property
    def replaced_beside(self) -> str:
        """Return the URI at which the replaced output stays, if there is no trash and it is not as a job had published
        it."""
        ending = f".replaced-{uris.name(self.temporary).removeprefix('.howdah-')}"
        name = shorten(uris.name(self.final), MAX_NAME_BYTES - len(ending) - _MAX_NUMBER_BYTES)
        return uris.join(uris.parent(self.final), f"{name}{ending}")

    @property
    def marker(self) -> str:
        """Return the name of a file beside _SUCCESS that exists until the commit is done, and that names the job."""
        return f".{uris.name(self.temporary).lstrip('.')}"


@dataclass(frozen=True)
class CommitRequest:
    """Commit or discard a job's outputs."""

    outputs: tuple[OutputCommit, ...]
    """The outputs."""
    checkpoint_lock: tuple[str, ...] = ()
    """The job's directory of checkpoints and its id, when the directory's lock is to be released."""


@dataclass(frozen=True)
class CommitReply(HelperReply):
    """The result of a commit: the outputs that are in place."""

    committed: tuple[str, ...] = ()
    """URIs of the outputs that were committed."""
    kept: tuple[str, ...] = ()
    """URIs at which outputs of a failed job are kept."""
    replaced: tuple[str, ...] = ()
    """URIs at which the earlier contents of the outputs' places are kept."""


def temporary_directory(job_id: str, number: int, final: str) -> str:
    """Return the URI at which the parts of a job's output `number` are collected: beside its final place, so that one
    rename moves the output."""
    return uris.join(uris.parent(final), f".howdah-{job_id}-{number}")


def reserve(job: JobSpec, job_id: str, conf_dir: str = "", origins: Mapping[str, str] = MappingProxyType({})) -> None:
    """Make the directories of a job's outputs (absolute URIs), and lock the job's directory of checkpoints. So a
    missing permission shows before the work, not after it. `abandon` undoes both.

    `origins` has the words that the user typed, by the path in the spec.

    Raises:
        StagingError: no permission, no quota.
    """

    for number, output in enumerate(job.outputs):
        wanted = {"path": temporary_directory(job_id, number, output.path)}
        if output.save.every_s or output.save.to:
            wanted["save"] = snapshot.temporary_directory(job_id, number, output)
        for key, uri in wanted.items():
            with _naming(f"outputs.{number}.{key}", origins):
                filesystem(uri, conf_dir).mkdirs(uri)
    if job.checkpoint.path:
        with _naming("checkpoint.path", origins):
            directory_lock.acquire(filesystem(job.checkpoint.path, conf_dir), job.checkpoint.path, job_id)


@contextlib.contextmanager
def _naming(place: str, origins: Mapping[str, str]) -> Iterator[None]:
    """Add to an error the place in the spec, and the words that the user typed there."""
    try:
        yield
    except StagingError as error:
        raise StagingError(str(Mistake(place, str(error)).with_origin(origins))) from error


def abandon(job: JobSpec, job_id: str, conf_dir: str = "") -> None:
    """Undo what `reserve` did: remove the directories with their content, and release the lock.

    Raises:
        StagingError: no permission.
    """
    for number, output in enumerate(job.outputs):
        abandoned = OutputCommit(
            temporary=temporary_directory(job_id, number, output.path),
            final=output.path,
            overwrite=output.overwrite,
            snapshot_prefix=snapshot_places.snapshot_prefix(output),
            unfinished=snapshot.temporary_directory(job_id, number, output),
        )
        discard(abandoned, filesystem(abandoned.temporary, conf_dir))
    if job.checkpoint.path:
        directory_lock.release(filesystem(job.checkpoint.path, conf_dir), job.checkpoint.path, job_id)


def commit(output: OutputCommit, fs: FileSystem) -> str:
    """Move an output to its place; return the URI at which the earlier content of the place is kept, "" if there is
    none.

    Raises:
        StagingError: something else is there already, or may not be written; the error names where the uploads are.
    """
    if not _is_published(fs, output):
        place = output.temporary
        try:
            _collect(fs, output)
            place = output.gathered
            _move_snapshots(fs, output)
            _keep_programs_mark(fs, uris.join(output.gathered, SUCCESS))
            fs.create(uris.join(output.gathered, output.marker)).close()
            begin_mark(fs, output.gathered, SUCCESS)
            _publish(fs, output)
        except StagingError as error:
            raise type(error)(f"{error}; the output is kept in {place}") from error
    if fs.exists(uris.join(output.final, output.marker)):
        complete_mark(fs, output.final, SUCCESS, _snapshots_in(fs, output), output.marker)
    kept = _put_replaced_away(fs, output)
    _remove_unfinished(fs, output)
    return kept


def _keep_programs_mark(fs: FileSystem, uri: str) -> None:
    """Rename the program's own _SUCCESS, which may be a manifest, because howdah's takes its place."""
    found = fs.stat(uri)
    if found is not None and found.size and not is_published(fs, uris.parent(uri)):
        _move(fs, uri, f"{uri}.program")


def discard(output: OutputCommit, fs: FileSystem) -> None:
    """Remove the uploaded files of an output, and put back the earlier content of its place. An output that has been
    published stays."""
    _undo_interrupted_move(fs, output)
    _put_back(fs, output)
    _put_replaced_away(fs, output)
    _remove_unfinished(fs, output)


def set_aside(output: OutputCommit, fs: FileSystem) -> tuple[bool, str]:
    """Move the uploaded files of a failed job's output to `failed`, without _SUCCESS, and remove the rest.

    They replace the files that an earlier job has left there. Return whether anything was uploaded, and the URI to
    which anything else at that place was moved."""
    _undo_interrupted_move(fs, output)
    if fs.exists(uris.join(output.final, output.marker)):  # published: the gathered files are copied already
        discard(output, fs)
        return False, ""
    _collect(fs, dataclasses.replace(output, uploaded=()))  # of a failed job, the parts that exist
    _keep_programs_mark(fs, uris.join(output.gathered, SUCCESS))
    for mark in (SUCCESS, output.marker):  # of a commit that broke off
        fs.delete(uris.join(output.gathered, mark))
    is_there = fs.exists(output.gathered)  # an object store has no empty directory
    found, put_away = is_there and bool(fs.children(output.gathered)), ""
    if found:
        begin_mark(fs, output.gathered, FAILED)
        try:
            put_away = _put_away(fs, output.failed, output, output.failed, _is_a_jobs(fs, output.failed))
            fs.rename(output.gathered, output.failed)
        except StagingError as error:
            told = message("{reason}; what the tasks made is in {uri}", reason=str(error), uri=output.gathered)
            raise type(error)(told) from error
        complete_mark(fs, output.failed, FAILED)
    discard(output, fs)
    return found, put_away


def _undo_interrupted_move(fs: FileSystem, output: OutputCommit) -> None:
    """Remove the copies that an interrupted move, in an object store, has made in the output's place. Until _SUCCESS,
    which is copied last, exists there, all uploaded files are still at their old place. The marker, which shows that
    the move is this job's, is removed last."""
    marker = uris.join(output.final, output.marker)
    if fs.exists(marker) and not fs.exists(uris.join(output.final, SUCCESS)) and fs.exists(output.gathered):
        names = {uris.below(entry.uri, output.gathered) for entry in fs.walk(output.gathered)} - {output.marker}
        # Some stores remove nothing more when one file of several is not there.
        fs.delete_files([each.uri for each in fs.walk(output.final) if uris.below(each.uri, output.final) in names])
        fs.delete(marker)


def _put_back(fs: FileSystem, output: OutputCommit) -> None:
    """Put back the earlier content of the output's place, even if an interrupted move has left only a part of it
    there."""
    for before in (output.removed, output.replaced):
        if fs.exists(before) and (not fs.exists(output.final) or _is_rest_of(fs, output.final, before)):
            _move(fs, before, output.final)


def _is_rest_of(fs: FileSystem, uri: str, whole: str) -> bool:
    """Return whether the files at `uri` may be the rest of `whole` that an interrupted move between the two, in an
    object store, has left. A directory that a job has published and nobody has changed since is no such rest."""
    if fs.moves_at_once(uri) or is_as_published(fs, uri):
        return False
    return _sizes(fs, uri).items() <= _sizes(fs, whole).items()


def _sizes(fs: FileSystem, uri: str) -> dict[str, int]:
    top = len(uris.path(uri).rstrip("/"))
    return {uris.path(entry.uri)[top:]: entry.size for entry in fs.walk(uri)}


def _put_replaced_away(fs: FileSystem, output: OutputCommit) -> str:
    """Put away the earlier content of the output's place. Return its URI now, "" if there was none or it is removed."""
    trashed = _put_away(fs, output.removed, output, output.final, is_a_jobs=True)
    return _put_away(fs, output.replaced, output, output.final, is_a_jobs=False) or trashed


def _put_away(fs: FileSystem, uri: str, output: OutputCommit, place: str, is_a_jobs: bool) -> str:
    """Move the content of `uri`, which was at `place`, to the trash. If there is no trash, remove it if it is nothing
    but a job's work, and move it aside otherwise. Return its URI now, "" if there was none or it is removed."""
    if not fs.exists(uri):
        return ""
    with contextlib.suppress(StagingError):  # no permission or no quota there, or an encryption zone between
        if trashed := move_to_trash(fs, uri, place):
            return trashed
    if is_a_jobs:
        fs.delete(uri)
        return ""
    beside = next(name for name in _numbered(output.replaced_beside) if not fs.exists(name))
    fs.rename(uri, beside)
    return beside


def _is_a_jobs(fs: FileSystem, directory: str, snapshots: Collection[str] = ()) -> bool:
    found = fs.stat(directory)
    return (
        found is not None and found.is_dir and (not fs.children(directory) or is_as_published(fs, directory, snapshots))
    )


def _snapshots_in(fs: FileSystem, output: OutputCommit) -> list[str]:
    """Return the snapshots that are in the output's place."""
    return snapshot_places.list_snapshots(fs, output.snapshot_prefix) if _has_snapshots_inside(output) else []


def _has_snapshots_inside(output: OutputCommit) -> bool:
    directory = snapshot_places.directory_of(output.snapshot_prefix) if output.snapshot_prefix else ""
    return f"{directory}/".startswith(f"{output.final.rstrip('/')}/")


def _numbered(uri: str) -> Iterator[str]:
    yield uri
    yield from (f"{uri}-{number}" for number in itertools.count(2))


def _remove_unfinished(fs: FileSystem, output: OutputCommit) -> None:
    if output.unfinished:
        same = uris.root(output.unfinished) == uris.root(output.final)
        snapshot.tidy(
            fs if same else filesystem(output.unfinished), output.unfinished, output.snapshot_prefix, output.final
        )
    # The marker is removed last: without it a second run would take the output for another job's.
    fs.delete(output.temporary)
    fs.delete(uris.join(output.final, output.marker))


def _is_published(fs: FileSystem, output: OutputCommit) -> bool:
    """Return whether this job's rename is done: its marker is at the final place, or no file is left to move there."""
    if fs.exists(uris.join(output.final, output.marker)):
        return not fs.exists(output.gathered)  # else the rename was interrupted
    if fs.exists(output.temporary) or not fs.exists(uris.join(output.final, SUCCESS)):
        return False
    # Each part, even an empty one, was a directory below `temporary`: so with parts `temporary` existed, and was
    # removed.
    return bool(output.parts) or len(fs.children(output.final)) == 1


def _collect(fs: FileSystem, output: OutputCommit) -> None:
    """Gather the parts.

    Raises:
        StagingError: one that was uploaded is not there: its node's directory is another one than that of this machine.
    """
    fs.mkdirs(output.gathered)
    for source, name in output.parts:
        part = uris.join(output.temporary, source)
        if not fs.exists(part):
            is_moved = name and fs.exists(uris.join(output.gathered, name))  # before an interruption
            if source in output.uploaded and not is_moved and uris.split(part)[0] == "file":
                raise StagingError(f"{part}: {_UNSEEN}")
            continue
        if not fs.children(part):
            continue  # moved before an interruption, or the task wrote nothing
        if name:
            _move(fs, part, uris.join(output.gathered, name))
            continue
        found = fs.stat(part)
        if found is not None and uris.split(part)[0] == "file":  # the output is private where the directory was
            fs.chmod(output.gathered, found.mode)
        for entry in fs.children(part):
            _move(fs, entry.uri, uris.join(output.gathered, uris.name(entry.uri)))


def _move_snapshots(fs: FileSystem, output: OutputCommit) -> None:
    """Move snapshots that are in the output's place into the output; the place is free if it held nothing else."""
    if not _has_snapshots_inside(output):
        return
    directory, final = snapshot_places.directory_of(output.snapshot_prefix), output.final.rstrip("/")
    for uri in snapshot_places.list_snapshots(fs, output.snapshot_prefix):
        target = uris.join(output.gathered, uris.below(uri, output.final))
        fs.mkdirs(uris.parent(target))
        _move(fs, uri, target)
    while f"{directory}/".startswith(f"{final}/"):
        if fs.exists(directory):
            if fs.children(directory):
                break
            fs.delete(directory)
        directory = uris.parent(directory)


def _move(fs: FileSystem, old: str, new: str) -> None:
    """Move files of the job, or finish a move of them that was interrupted."""
    fs.rename(old, new, overwrite=not fs.moves_at_once(new))


def _publish(fs: FileSystem, output: OutputCommit) -> None:
    marker = uris.join(output.final, output.marker)
    if not fs.exists(marker) and fs.exists(output.final):
        if not output.overwrite:
            raise StagingError(f"{output.final}: exists already, and was not there when the job was submitted")
        if not fs.moves_at_once(output.final):
            _put_back(fs, output)  # else only the rest would be moved, and its owner would be unknown
        _put_replaced_away(fs, output)  # of an interrupted commit: the present files have come since
        is_a_jobs = _is_a_jobs(fs, output.final, _snapshots_in(fs, output))
        fs.rename(output.final, output.removed if is_a_jobs else output.replaced)
    if not fs.moves_at_once(output.final):
        fs.create(marker).close()  # shows that the files there are this job's, if the move is resumed
    _move(fs, output.gathered, output.final)


def commit_outputs(request: CommitRequest) -> CommitReply:
    """Commit every output, including those after one that fails."""

    replaced: list[str] = []

    def committed(output: OutputCommit, fs: FileSystem) -> str:
        replaced.append(commit(output, fs))
        return output.final

    done, error = _apply_to_outputs(request, committed)
    return CommitReply(committed=done, error=error, replaced=tuple(filter(None, replaced)))


def discard_outputs(request: CommitRequest) -> CommitReply:
    """Discard every output, or move it to the place where a failed job keeps it, including those after one that
    fails."""

    replaced: list[str] = []

    def discarded(output: OutputCommit, fs: FileSystem) -> str:
        if not output.failed:
            discard(output, fs)
            return ""
        is_kept, put_away = set_aside(output, fs)
        replaced.append(put_away)
        return output.failed if is_kept else ""

    kept, error = _apply_to_outputs(request, discarded)
    return CommitReply(kept=kept, error=error, replaced=tuple(filter(None, replaced)))


def _apply_to_outputs(
    request: CommitRequest, act: Callable[[OutputCommit, FileSystem], str]
) -> tuple[tuple[str, ...], str]:
    """Apply `act` to every output, and release the lock of the checkpoints; return the URIs that `act` returned, and
    the errors."""
    found: list[str] = []
    errors: list[str] = []
    for output in request.outputs:
        try:
            found.append(retry_until(partial(act, output, filesystem(output.final))))
        except HowdahError as error:
            errors.append(one_line(error))
    if request.checkpoint_lock:
        directory, job_id = request.checkpoint_lock
        with contextlib.suppress(HowdahError):  # shows the next job with this directory that this one has ended
            directory_lock.release(filesystem(directory), directory, job_id)
    return tuple(filter(None, found)), "; ".join(errors)


if __name__ == "__main__":
    snapshot.report_moves()
    run_helper_main({"commit": commit_outputs, "discard": discard_outputs})
