"""Where a job's outputs are gathered, by whom, and which of the parts count. Pure."""

from __future__ import annotations

from howdah.data.commit import temporary
from howdah.master.state import GangState, TaskState
from howdah.spec import JobSpec, Output, TaskId, chief


def commit_request(state: GangState) -> dict[str, object]:
    """Which parts of which outputs count, for `howdah.data.commit`."""
    outputs = []
    for number, output in enumerate(state.job.outputs):
        takers = [t for t in state.tasks.values() if uploads(state.job, output, t.id)]
        parts = [
            {"from": part(task), "to": "" if output.tasks and len(takers) == 1 else task.id.slug}
            for task in takers
            if task.exit is not None and task.exit.ok
        ]
        outputs.append(
            {
                "temporary": temporary(state.id, number, output.path),
                "final": output.path,
                "overwrite": output.overwrite,
                "parts": parts,
            }
        )
    return {"outputs": outputs}


def empty_outputs(state: GangState) -> list[str]:
    """Sentences about outputs that no task had anything for."""
    uploaded = {uri for task in state.tasks.values() for uri in task.uploaded}
    return [
        f"output {output.path} is empty: no task made a directory {output.source!r}"
        for number, output in enumerate(state.job.outputs)
        if not any(uri.startswith(f"{temporary(state.id, number, output.path)}/") for uri in uploaded)
    ]


def part(task: TaskState) -> str:
    """The name under which one attempt uploads: two attempts never write one place."""
    return f"{task.id.slug}.{task.attempt}"


def uploads(job: JobSpec, output: Output, task: TaskId) -> bool:
    """Whether this task uploads this output."""
    if not output.tasks:
        return job.roles[task.role].tracked is not False
    if output.tasks == "chief":
        return task == chief(job)
    return output.tasks in (str(task), task.role)
