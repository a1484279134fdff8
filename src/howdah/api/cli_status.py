"""The JSON of a job that `howdah status --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from howdah.api.serializers import mask_spec, tasks, tracker_runs
from howdah.spec.view import JobView


def describe(view: JobView) -> dict[str, Any]:
    """Return the job as JSON, without texts in its spec that look like secrets, because the output of a script may be
    kept."""
    return {
        "id": view.id,
        "name": view.job.name if view.job else "",
        "engine": view.engine,
        "user": view.user,
        "host": view.host,
        "python": view.python,
        "state": view.state.value,
        "epoch": view.epoch,
        "progress": round(view.progress, 4),
        "started": view.started,
        "running": view.running,
        "finished": view.finished,
        "diagnostics": view.outcome.diagnostics if view.outcome else "",
        "last_lines": list(view.outcome.exit.lines) if view.outcome and view.outcome.exit else [],
        "outputs": list(view.outputs),
        "saves": [asdict(save) for save in view.snapshots],
        "resumed": view.resumed,
        "tracker_runs": list(tracker_runs(view)),
        "notes": list(view.notes),
        "tasks": tasks(view),
        "spec": mask_spec(view.job) if view.job else {},
    }
