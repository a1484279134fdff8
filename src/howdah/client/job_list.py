"""Lists the jobs that the engines know, together with those that only a history server knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from howdah.client import history_service
from howdah.client.api_client import ApiClient
from howdah.client.engine_registry import engines, settings_for
from howdah.client.job_filter import JobFilter, start_time
from howdah.client.remote_jobs import RemoteJobs
from howdah.config.settings import HISTORY_URL
from howdah.errors import EngineUnavailable, NotFound
from howdah.spec import JobReport
from howdah.storage.progress import no_notice


def merge_reports(reports: Iterable[JobReport], remembered: Iterable[JobReport]) -> list[JobReport]:
    """Merge both, each job once, the newest first; an engine's report of a job replaces the history server's."""
    found = {report.id: report for report in (*remembered, *reports)}
    return sorted(found.values(), key=start_time, reverse=True)


def jobs_of_history(wanted: JobFilter, engine: str, profile: str, max_jobs: int) -> list[JobReport]:
    """Return the jobs of the history server that is configured, else of one that runs as a job; only those of `engine`,
    if given.

    Raises:
        NotFound: no history server is known. NotPermitted: the server refuses the user.
        EngineUnavailable: the server does not answer.
    """
    found = RemoteJobs(ApiClient(history_link(profile))).list_jobs(wanted.query, max_jobs)
    return [report for report in found if engine in ("", report.engine)]


def history_link(profile: str) -> str:
    """Return the link of the history server that is configured, else of one that runs as a job.

    Raises:
        NotFound: no history server is known.
    """
    link = settings_for({"profile": profile})[HISTORY_URL] or _running_page(profile)
    if not link:
        advice = "set history_url to the link of one, or start one: `howdah history --on yarn`"
        raise NotFound(f"no history server is known: {advice}")
    return link


def _running_page(profile: str) -> str:
    conf_dir = settings_for({"engine": "yarn", "profile": profile})["hadoop_conf_dir"]
    for engine in engines("", profile):
        with contextlib.suppress(EngineUnavailable):  # the list says so
            job = history_service.find_running_service(engine)
            if job is not None:
                return history_service.link(engine, job.id, conf_dir, no_notice)
    return ""
