"""`python -m howdah.outputs.commit commit|discard`: an output appears in its place by one rename, or not at all.

On stdin {"outputs": [{"temporary", "final", "overwrite", "parts": [{"from", "to"}]}]}, on stdout one line
{"committed": [uri, ...], "kept": [uri, ...]}, and {"error"} with it when something could not be done. Whatever was
interrupted can be run again: every step looks first whether it has been done.

    <temporary>/<from>            what one attempt uploaded; an attempt that does not count is simply not in `parts`
    <temporary>/_commit/<to>      the attempts that count, under their tasks' names, and _SUCCESS
    <final>                       `_commit`, renamed; copies made while the programs ran
                                  (`howdah.outputs.snapshots.snapshot`) that are there already come with it
    <temporary>-replaced          what was at <final> before, when it is to be overwritten
    <failed>                      instead of <final>, when the job has failed and its output says `keep_failed`
"""

from __future__ import annotations

import contextlib
import json
import sys
from functools import partial
from typing import Any

from howdah.checkpoints import directory_lock
from howdah.errors import HowdahError, StagingError
from howdah.outputs.snapshots import snapshot
from howdah.spec import uris
from howdah.spec.job import JobSpec
from howdah.spec.values import dataclass
from howdah.storage.filesystem import FileSystem, filesystem
from howdah.storage.retry import retry_until
from howdah.wire.stderr import ignore_full_disk

SUCCESS = "_SUCCESS"


@dataclass(frozen=True)
class Commitment:
    """One output. `parts` are pairs: the attempt's own directory, and its name in the output ("" for the output
    itself). `saves` is what the names of copies begin with, "" for none; `unfinished` where those grew."""

    temporary: str
    final: str
    overwrite: bool = False
    parts: tuple[tuple[str, str], ...] = ()
    saves: str = ""
    unfinished: str = ""

    @property
    def gathered(self) -> str:
        return uris.join(self.temporary, "_commit")

    @property
    def replaced(self) -> str:
        return self.temporary.rstrip("/") + "-replaced"

    @property
    def marker(self) -> str:
        """Lies in the output beside _SUCCESS until the commit is done, and says whose commit it was."""
        return f".{uris.name(self.temporary).lstrip('.')}"


def temporary(job_id: str, number: int, final: str) -> str:
    """Where the parts of a job's output `number` are gathered: beside its final place, so that one rename moves it."""
    return uris.join(uris.parent(final), f".howdah-{job_id}-{number}")


def reserve(job: JobSpec, job_id: str, conf_dir: str = "") -> None:
    """Make the places of a job's outputs (absolute URIs), so that one that may not be written is told of before the
    work, not after it, and take its directory of checkpoints. `abandon` removes them.

    Raises:
        StagingError: no permission, no quota.
    """
    for number, output in enumerate(job.outputs):
        where = temporary(job_id, number, output.path)
        filesystem(where, conf_dir).mkdirs(where)
        if output.save.every_s or output.save.to:
            where = snapshot.temporary(job_id, number, output)
            filesystem(where, conf_dir).mkdirs(where)
    if job.checkpoint.path:
        directory_lock.acquire(filesystem(job.checkpoint.path, conf_dir), job.checkpoint.path, job_id)


def abandon(job: JobSpec, job_id: str, conf_dir: str = "") -> None:
    """Remove what `reserve` made and what lies in it: nobody will commit it.

    Raises:
        StagingError: no permission.
    """
    for number, output in enumerate(job.outputs):
        copies = (snapshot.place(output), snapshot.temporary(job_id, number, output))
        given_up = Commitment(temporary(job_id, number, output.path), output.path, output.overwrite, (), *copies)
        discard(given_up, filesystem(given_up.temporary, conf_dir))
    if job.checkpoint.path:
        directory_lock.release(filesystem(job.checkpoint.path, conf_dir), job.checkpoint.path, job_id)


def commit(output: Commitment, fs: FileSystem) -> None:
    """Put it in its place.

    Raises:
        StagingError: something else is there already, or may not be written; the uploads are kept, and named.
    """
    if not _is_ours(fs, output):
        _gather(fs, output)
        try:
            _publish(fs, output)
        except StagingError as error:
            raise StagingError(f"{error}; the output is kept in {output.gathered}") from error
    _tidy(fs, output)


def discard(output: Commitment, fs: FileSystem) -> None:
    """Remove what was uploaded for it. An output that is in its place already stays there."""
    if not fs.exists(output.final) and fs.exists(output.replaced):
        fs.rename(output.replaced, output.final)
    _tidy(fs, output)


def set_aside(output: Commitment, fs: FileSystem, place: str) -> bool:
    """Keep what was uploaded for an output of a job that failed at `place`, instead of what is there from an earlier
    one, and remove the rest; whether there was anything. It has no _SUCCESS."""
    _collect(fs, output)
    found = bool(fs.children(output.gathered))
    if found:
        fs.delete(place)
        fs.rename(output.gathered, place)
    discard(output, fs)
    return found


def _tidy(fs: FileSystem, output: Commitment) -> None:
    if output.unfinished:
        same = uris.root(output.unfinished) == uris.root(output.final)
        snapshot.tidy(fs if same else filesystem(output.unfinished), output.unfinished, output.saves, output.final)
    fs.delete(output.replaced)
    # The marker goes last: without it a second run would take the output for somebody else's.
    fs.delete(output.temporary)
    fs.delete(uris.join(output.final, output.marker))


def _is_ours(fs: FileSystem, output: Commitment) -> bool:
    """Whether the rename has happened: the marker is at the final place, or nothing is left to be moved there."""
    if fs.exists(uris.join(output.final, output.marker)):
        return True
    if fs.exists(output.temporary) or not fs.exists(uris.join(output.final, SUCCESS)):
        return False
    # Each part, even an empty one, was a directory below `temporary`: with parts it has existed, and was removed last.
    return bool(output.parts) or len(fs.children(output.final)) == 1


def _gather(fs: FileSystem, output: Commitment) -> None:
    _collect(fs, output)
    for name in (output.marker, SUCCESS):
        fs.create(uris.join(output.gathered, name)).close()


def _collect(fs: FileSystem, output: Commitment) -> None:
    fs.mkdirs(output.gathered)
    for source, name in output.parts:
        part = uris.join(output.temporary, source)
        if not fs.exists(part) or not fs.children(part):
            continue  # moved before an interruption, or the task wrote nothing
        if name:
            fs.rename(part, uris.join(output.gathered, name))
        else:
            _spill(fs, part, output.gathered)


def _spill(fs: FileSystem, part: str, target: str) -> None:
    """Move what lies in `part` into `target`, one level: whole directories go at once."""
    for entry in fs.children(part):
        fs.rename(entry.uri, uris.join(target, uris.name(entry.uri)))


def _rescue(fs: FileSystem, output: Commitment) -> None:
    """Copies of this output that are in its place come into the output; with nothing else there, the place is free."""
    folder, final = snapshot.folder_of(output.saves) if output.saves else "", output.final.rstrip("/")
    if not f"{folder}/".startswith(f"{final}/"):
        return
    for copy in snapshot.named(fs, output.saves):
        target = uris.join(output.gathered, uris.below(copy, output.final))
        fs.mkdirs(uris.parent(target))
        fs.rename(copy, target)
    while f"{folder}/".startswith(f"{final}/"):
        if fs.exists(folder):
            if fs.children(folder):
                break
            fs.delete(folder)
        folder = uris.parent(folder)


def _publish(fs: FileSystem, output: Commitment) -> None:
    _rescue(fs, output)
    if fs.exists(output.final):
        if not output.overwrite:
            raise StagingError(f"{output.final}: exists already, and was not there when the job was submitted")
        if fs.exists(output.replaced):
            fs.delete(output.final)
        else:
            fs.rename(output.final, output.replaced)
    fs.rename(output.gathered, output.final)


def run(verb: str, request: dict[str, Any]) -> dict[str, Any]:
    """Do it for every output; those after one that fails are tried all the same."""
    act = {"commit": commit, "discard": discard}[verb]
    done: list[str] = []
    kept: list[str] = []
    errors: list[str] = []
    for item in request["outputs"]:
        parts = tuple((part["from"], part["to"]) for part in item.get("parts", ()))
        try:
            copies = item.get("saves", {})
            places = (copies.get("to", ""), copies.get("temporary", ""))
            output = Commitment(item["temporary"], item["final"], bool(item.get("overwrite")), parts, *places)
            if verb == "discard" and item.get("failed"):
                aside = retry_until(partial(set_aside, output, filesystem(output.final), item["failed"]))
                kept += [item["failed"]] if aside else []
                continue
            retry_until(partial(act, output, filesystem(output.final)))
            done.append(item["final"])
        except HowdahError as error:
            errors.append(str(error).replace("\n", "; "))
    if request.get("lease"):
        directory, job_id = request["lease"]
        with contextlib.suppress(HowdahError):  # whoever wants it next sees that this job has ended
            directory_lock.release(filesystem(directory), directory, job_id)
    answer: dict[str, Any] = {"committed": done if verb == "commit" else [], **({"kept": kept} if kept else {})}
    return {**answer, "error": "; ".join(errors)} if errors else answer


def main(argv: list[str]) -> int:
    answer = run(argv[1] if len(argv) > 1 else "commit", json.load(sys.stdin))
    print(json.dumps(answer), flush=True)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    ignore_full_disk()
    sys.exit(main(sys.argv))
