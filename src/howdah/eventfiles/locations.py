"""Where a job's event files are: the one answer that curves and TensorBoard, live and after, are made from. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.outputs.commit import temporary
from howdah.spec import uris
from howdah.spec.job import Output
from howdah.spec.task import State
from howdah.spec.view import JobView


def of(view: JobView) -> list[tuple[str, str]]:
    """Pairs of what the names of the runs begin with, and a directory (URI) that may hold event files, in it or below.

    A run is named by its folder below the directory, behind the pair's first part; "" adds nothing to it. What
    `board` names is believed; without it the checkpoints, and what is there of each output, may hold some.
    """
    if view.job is None:
        return []
    if view.job.board.path:
        return [("", view.job.board.path)]
    return kept(view)


def kept(view: JobView) -> list[tuple[str, str]]:
    """The checkpoints and what is there of each output, as pairs like those of `of`: where models are, too."""
    found: dict[str, str] = {}
    if view.job is None:
        return []
    if view.job.checkpoint.path:
        found["checkpoint"] = view.job.checkpoint.path
    for number, output in enumerate(view.job.outputs):
        if output.strategy == "upload":
            base = _unused(uris.name(output.path) or output.source, found)
            found.update({f"{base}/{name}" if name else base: uri for name, uri in _there(view, number, output)})
    return list(found.items())


def _unused(name: str, taken: dict[str, str]) -> str:
    names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in names if not any(each.split("/")[0] == one for each in taken))


def _there(view: JobView, number: int, output: Output) -> Iterator[tuple[str, str]]:
    """The output itself when it is complete; until then its newest copy, and what tasks that have ended uploaded."""
    if output.path in view.outputs:
        yield "", output.path
        return
    if view.state is State.FAILED and output.keep_failed:
        yield "", f"{output.path.rstrip('/')}.failed"
        return
    copies = [save for save in view.saves if save.output == number and save.state is State.SUCCEEDED]
    left = [save for save in copies if not save.removed]
    if left:
        yield "", left[-1].uri
    elif not view.state.ended:
        for task in view.tasks.values():
            if task.state is State.SUCCEEDED:
                part = f"{task.id.slug}.{task.attempt}"
                yield task.id.slug, uris.join(temporary(view.id, number, output.path), part)
