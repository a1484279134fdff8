"""Makes links to the page of a running job, to its charts and to its TensorBoard."""

from __future__ import annotations

from howdah.client.master_client import job_key
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, StagingError
from howdah.spec import JobReport, State
from howdah.spec.view import JobView
from howdah.wire import auth
from howdah.wire.tensorboard_command import link as board_link

HOURS = 12
"""Hours for which a link permits actions unless the user says otherwise."""


def tensorboard_url(engine: Engine, report: JobReport, view: JobView) -> str:
    """Return a link that opens the job's TensorBoard, which runs beside the job or is the job itself; "" while there is
    none."""
    if view.job is not None and view.job.framework == "board":
        task = next(iter(view.tasks.values()))
        port = task.ports.get("main", 0) if task.state is State.RUNNING else 0
        key = engine.job_key(report) if port else None
        return board_link(task.host, port, auth.gang_key(key)) if key is not None else ""
    tensorboard = view.tensorboard
    key = engine.job_key(report) if tensorboard.state == "open" else None
    return board_link(tensorboard.host, tensorboard.port, auth.tensorboard_token(key)) if key is not None else ""


def page_url(engine: Engine, report: JobReport) -> str:
    """Return a link to the job's page for its owner: through the engine's proxy, else with the job's own token; "" when
    no master serves the page, or the job has just ended."""
    if report.tracking_url:
        return report.tracking_url
    key = engine.job_key(report) if report.master else None
    return _page_link(report, key) if key is not None else ""


def page_url_if_known(engine: Engine, report: JobReport) -> str:
    """Return the link of `page_url` for a command that follows the job and can do without it: "" also if the job's key
    can't be read just now, or not from this machine."""
    try:
        return page_url(engine, report)
    except (EngineUnavailable, StagingError):
        return ""


def page_link(engine: Engine, report: JobReport, expires: float = 0.0) -> str:
    """Return a link to the job's page that everyone with the link can open. It permits actions until `expires` (epoch
    seconds, 0: none).

    Raises:
        StagingError: the job's key is gone, or this user may not read it.
    """
    return _page_link(report, job_key(engine, report), expires)


def _page_link(report: JobReport, key: bytes, expires: float = 0.0) -> str:
    """Make the link. Its tokens come after the `#`, so no browser sends them to a server or another page."""
    act = f"&act={auth.act_token(key, expires)}" if expires else ""
    return f"{_base_url(report)}#token={auth.view_token(key)}{act}"


def embed_url(engine: Engine, report: JobReport) -> str:
    """Return the address of the job's charts for an iframe in another page; `&run=` and `&tag=` select charts."""
    token = auth.embed_token(job_key(engine, report))
    return f"{_base_url(report)}api/v1/jobs/{report.id}/curves/embed.html?token={token}"


def _base_url(report: JobReport) -> str:
    return (report.tracking_url or report.master).rstrip("/") + "/"
