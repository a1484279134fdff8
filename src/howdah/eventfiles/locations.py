"""Finds the directories of a job's event files, for charts and TensorBoard, while the job runs and after it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.outputs.commit import temporary_directory
from howdah.spec import uris
from howdah.spec.job import Output
from howdah.spec.task import State
from howdah.spec.view import JobView


def event_file_locations(view: JobView) -> list[tuple[str, str]]:
    """Return pairs of a prefix for names of runs, and a directory (URI) that may hold event files, in it or below.

    A run is named by the prefix and its path below the directory. If the job's `board` names a directory, only that one
    is returned; without it, the checkpoints and the existing parts of each output may hold event files.
    """
    if view.job is None:
        return []
    if view.job.board.path:
        return [("", view.job.board.path)]
    return checkpoint_locations(view)


def checkpoint_locations(view: JobView) -> list[tuple[str, str]]:
    """Return the checkpoint directory and the existing parts of each output, as such pairs: models are there, too."""
    found: dict[str, str] = {}
    if view.job is None:
        return []
    if view.job.checkpoint.path:
        found["checkpoint"] = view.job.checkpoint.path
    for number, output in enumerate(view.job.outputs):
        if output.strategy == "upload":
            base = _unused_name(uris.name(output.path) or output.source, found)
            directories = _output_directories(view, number, output)
            found.update({f"{base}/{name}" if name else base: uri for name, uri in directories})
    return list(found.items())


def _unused_name(name: str, taken: dict[str, str]) -> str:
    bases = {each.split("/")[0] for each in taken}
    names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(each for each in names if each not in bases)


def _output_directories(view: JobView, number: int, output: Output) -> Iterator[tuple[str, str]]:
    """Yield the output itself when it is complete; until then its newest snapshot, or what ended tasks uploaded."""
    if output.path in view.outputs:
        yield "", output.path
        return
    if view.state is State.FAILED and output.keep_failed:
        yield "", f"{output.path.rstrip('/')}.failed"
        return
    saves = [save for save in view.snapshots if save.output == number and save.state is State.SUCCEEDED]
    snapshots = [save.uri for save in saves if not save.removed]
    if snapshots:
        yield "", snapshots[-1]
    elif not view.state.ended:
        for task in view.tasks.values():
            if task.state is State.SUCCEEDED:
                part = f"{task.id.slug}.{task.attempt}"
                yield task.id.slug, uris.join(temporary_directory(view.id, number, output.path), part)
