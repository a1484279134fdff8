"""Where a job's outputs are gathered, which tasks make them, and which of the parts count. The module is pure."""

from __future__ import annotations

import posixpath

from howdah.master.state import GangState, TaskState
from howdah.outputs import snapshot
from howdah.outputs.commit import CommitRequest, OutputCommit, temporary_directory
from howdah.spec import JobSpec, Output, State, TaskId, chief
from howdah.spec.message import message
from howdah.storage import snapshot_places
from howdah.wire.messages import StdoutOutput
from howdah.wire.program_protocol import FUNCTION_RESULTS


def commit_request(state: GangState) -> CommitRequest:
    """Return which parts of which outputs count, for `howdah.outputs.commit`."""
    outputs: list[OutputCommit] = []
    failed = state.outcome is not None and state.outcome.state is State.FAILED
    for number, output in enumerate(state.job.outputs):
        tasks, temporary = tasks_of_output(state, output), temporary_directory(state.id, number, output.path)
        outputs.append(
            OutputCommit(
                temporary=temporary,
                final=output.path,
                overwrite=output.overwrite,
                parts=tuple(
                    (part_directory(task), "" if is_flat(output, len(tasks)) else task.id.slug)
                    for task in tasks
                    if task.kept or (task.exit is not None and task.exit.ok)
                ),
                uploaded=tuple(
                    part for task in tasks if posixpath.join(temporary, part := part_directory(task)) in task.uploaded
                ),
                snapshot_prefix=snapshot_places.snapshot_prefix(output),
                unfinished=snapshot.temporary_directory(state.id, number, output),
                failed=_place_of_failed(output) if failed and _is_kept(state, output) else "",
            )
        )
    checkpoints = state.job.checkpoint.path
    return CommitRequest(tuple(outputs), (checkpoints, state.id) if checkpoints else ())


def _place_of_failed(output: Output) -> str:
    return f"{output.path.rstrip('/')}.failed"


def places_of_results(job: JobSpec) -> set[str]:
    """Return where the results of functions go. Their caller removes them, so that nobody else is told of them."""
    found = [output for output in job.outputs if output.source == FUNCTION_RESULTS]
    return {*(output.path for output in found), *map(_place_of_failed, found)}


def tasks_of_output(state: GangState, output: Output) -> list[TaskState]:
    """Return the tasks that make a part of the output."""
    return [task for task in state.tasks.values() if is_uploaded_by(state.job, output, task.id)]


def keeps_failed(output: Output) -> bool:
    """Return whether the output is kept when the job fails; a stream never is, because its end is missing."""
    return output.keep_failed and output.strategy == "upload"


def _is_kept(state: GangState, output: Output) -> bool:
    """Return whether the output of a failed job is kept. An uploaded output is kept, too, if the job failed only
    because another output is missing."""
    return keeps_failed(output) or (state.incomplete and output.strategy == "upload")


def is_flat(output: Output, takers: int) -> bool:
    """Return whether a task's files go straight into the output; part files of streams are named after their tasks."""
    return output.strategy == "stream" or bool(output.tasks and takers == 1)


def stdout_output(job_id: str, job: JobSpec, task: TaskState) -> StdoutOutput | None:
    """Return the order for the task's standard output, if an output takes it."""
    for number, output in enumerate(job.outputs):
        if output.strategy == "stream" and is_uploaded_by(job, output, task.id):
            uri = posixpath.join(temporary_directory(job_id, number, output.path), part_directory(task))
            return StdoutOutput(
                uri, name=f"part-{task.id.slug}", output=output.path, format=output.format, options=output.options
            )
    return None


def empty_outputs(state: GangState) -> list[str]:
    """Return sentences about outputs that no task had anything for, and that may be empty."""
    nothing_printed = "output {uri} is empty: no task printed anything"
    not_made = "output {uri} is empty: no task made {path}"
    return [
        message(
            nothing_printed if output.strategy == "stream" else not_made,
            uri=output.path,
            path=repr(output.source),
        )
        for output in _missing_outputs(state)
        if output.optional or output.strategy == "stream"
    ]


def missing_outputs(state: GangState) -> list[str]:
    """Return sentences about outputs that no task made, and without which the job has not succeeded."""
    template = "output {uri} is missing: no task made {path}, and the output is not `optional`"
    return [
        message(template, uri=output.path, path=repr(output.source))
        for output in _missing_outputs(state)
        if not output.optional and output.strategy != "stream"
    ]


def _missing_outputs(state: GangState) -> list[Output]:
    uploaded = {uri for task in state.tasks.values() for uri in task.uploaded}
    return [
        output
        for number, output in enumerate(state.job.outputs)
        if not any(uri.startswith(f"{temporary_directory(state.id, number, output.path)}/") for uri in uploaded)
    ]


def part_directory(task: TaskState) -> str:
    """Return the name under which one attempt uploads: two attempts never write to one place."""
    return f"{task.id.slug}.{task.attempt}"


def is_uploaded_by(job: JobSpec, output: Output, task: TaskId) -> bool:
    """Return whether this task uploads a directory for this output or prints the output."""
    if task.index >= job.roles[task.role].replicas:
        return False
    if not output.tasks:
        return job.roles[task.role].tracked is not False
    if output.tasks == "chief":
        return task == chief(job)
    return output.tasks in (str(task), task.role)
