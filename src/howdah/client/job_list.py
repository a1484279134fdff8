"""Lists the jobs that the engines know, together with those that only a history server knows."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from howdah.api import history_servers
from howdah.client import history_service
from howdah.client.api_client import ApiClient
from howdah.client.clusters import LIMIT_S, ClusterAnswer, ask_at_once, describe_clusters, find_clusters, too_late
from howdah.client.engine_registry import settings_for
from howdah.client.job_filter import JobFilter, start_time
from howdah.client.remote_jobs import RemoteJobs
from howdah.config.settings import HISTORY_URL
from howdah.errors import HowdahError, NotFound, SpecError
from howdah.localfiles.own_directories import state_directory
from howdah.spec import JobReport
from howdah.spec.values import dataclass
from howdah.storage.progress import no_notice

NO_SERVER = "no history server is known: set history_url to the link of one, or start one here: `howdah history`"

CLOCKS_S = 600.0
"""The most seconds between the start of a job as the engine reports it and as the job's log has it: their clocks
differ, and a master may start slowly."""


@dataclass(frozen=True)
class ListedJob:
    """A job as `howdah list` shows it."""

    report: JobReport
    """The report of the job by the engine, or else by a history server."""
    profile: str = ""
    """The profile that leads to its cluster; "" for settings without a profile, or if only a history server knows the
    job."""


def jobs_of_answers(answers: Iterable[ClusterAnswer]) -> Iterator[ListedJob]:
    """Yield the jobs of all clusters. Two addresses may lead to one cluster, so a job that is in two answers is listed
    once. Jobs of two clusters may have the same id, but then they have different moments of submission."""
    seen = set()
    for answer in answers:
        for report in answer.reports:
            key = (report.engine, report.id, report.submitted, report.user, report.name)
            if key not in seen:
                yield ListedJob(report, answer.profile)
            seen.add(key)


def merge_jobs(listed: Iterable[ListedJob], remembered: Iterable[JobReport]) -> list[ListedJob]:
    """Merge both lists, the newest job first. An engine's report of a job replaces that of a history server, but for
    the tags, which not every engine knows."""
    merged = list(listed)
    found: dict[str, list[int]] = {}
    for number, job in enumerate(merged):
        found.setdefault(job.report.id, []).append(number)
    for report in remembered:
        same_id = found.setdefault(report.id, [])
        same = next((number for number in same_id if _may_be_same(merged[number].report, report)), None)
        if same is None:
            same_id.append(len(merged))
            merged.append(ListedJob(report))
        elif report.tags and not (known := merged[same]).report.tags:
            merged[same] = replace(known, report=replace(known.report, tags=report.tags))
    return sorted(merged, key=lambda job: start_time(job.report), reverse=True)


def _may_be_same(known: JobReport, remembered: JobReport) -> bool:
    """Return whether a report of a history server may be about a known job, and not about another cluster's job of the
    same id. A history server does not know when a job was submitted, and may not have read its log yet."""
    for one, other in ((known.engine, remembered.engine), (known.user, remembered.user), (known.name, remembered.name)):
        if one != other and one not in ("", known.id) and other not in ("", remembered.id):
            return False
    if not remembered.started or remembered.name == remembered.id:  # its log has not been read
        return True
    first, last = known.submitted or known.started, known.started or known.finished or math.inf
    return first - CLOCKS_S <= remembered.started <= last + CLOCKS_S


@dataclass(frozen=True)
class KnownHistoryServer:
    """A history server that one of the user's profiles leads to."""

    profile: str
    """The first profile that leads there."""
    find_link: Callable[[], str]
    """Returns the server's link; of a server that runs as a job it waits until the server serves."""


def find_history_servers(profile: str = "") -> Iterator[KnownHistoryServer]:
    """Yield the history servers of the user's profiles, each once: those that the profiles name, then those that run as
    jobs on the clusters of the other profiles; without any of them the newest that runs on this machine. With `profile`
    only this one counts, and a server of this machine only if it chooses the engine of this machine.

    Raises:
        EngineUnavailable: no server is known, and a cluster that may have one does not answer.
    """
    settings = settings_for({"profile": profile})
    links = {settings.profile: settings[HISTORY_URL]}
    for each in () if profile else settings.profiles:
        with contextlib.suppress(SpecError):  # a wrong profile has no cluster
            links.setdefault(each, settings_for({"profile": each})[HISTORY_URL])
    profile_of_link = {link: each for each, link in reversed(links.items()) if link}
    are_known = bool(profile_of_link)
    for link in dict.fromkeys(filter(None, links.values())):
        yield KnownHistoryServer(profile_of_link[link], functools.partial(str, link))
    clusters = find_clusters("", profile)
    without = [cluster for cluster in clusters if not links[cluster.profile]]
    silent: HowdahError | None = None
    for cluster, answer in zip(without, describe_clusters(without) if without else (), strict=True):
        silent = silent or answer.error
        service = history_service.running_service(answer.reports)
        if service is not None:
            conf_dir = settings_for({"engine": cluster.engine.name, "profile": cluster.profile})["hadoop_conf_dir"]
            link_of_service = functools.partial(history_service.link, cluster.engine, service.id, conf_dir, no_notice)
            yield KnownHistoryServer(cluster.profile, link_of_service)
            are_known = True
    if not are_known and silent is not None:
        raise silent
    is_here = any(each.engine.one_machine and each.engine.name == settings["engine"] for each in clusters)
    if are_known or (profile and not is_here):
        return
    for link in history_servers.links(Path(state_directory(os.environ), "history"))[:1]:
        yield KnownHistoryServer(settings.profile, functools.partial(str, link))


def jobs_of_history(
    wanted: JobFilter,
    engine: str,
    profile: str,
    max_jobs: int,
    report_silent: Callable[[str, HowdahError], None] = lambda *_: None,
    limit_s: float = LIMIT_S,
    archived: bool = False,
) -> list[JobReport]:
    """Return the jobs of all history servers of the user's profiles; only those of `engine`, if given. Archived jobs
    are left out unless `archived` is true.

    The servers are asked at the same time, and each has `LIMIT_S` seconds. If at least one answers, `report_silent` is
    called for each that does not, with its profile and the reason.

    Raises:
        NotFound: no history server is known. NotPermitted: the only server refuses the user.
        EngineUnavailable: no server answers.
    """
    servers = list(find_history_servers(profile))
    if not servers:
        raise NotFound(NO_SERVER)
    query = wanted.query | ({"engine": engine} if engine else {}) | ({"archived": "also"} if archived else {})

    def ask(server: KnownHistoryServer) -> list[JobReport] | HowdahError:
        try:
            return RemoteJobs(ApiClient(server.find_link())).list_jobs(query, max_jobs)
        except HowdahError as error:
            return error

    answers = list(ask_at_once([functools.partial(ask, server) for server in servers], limit_s))
    errors = [too_late(limit_s) if each is None else each for each in answers if not isinstance(each, list)]
    if len(errors) == len(servers):
        raise errors[0]
    found: list[JobReport] = []
    for server, answer in zip(servers, answers, strict=True):
        if isinstance(answer, list):
            found += [report for report in answer if engine in ("", report.engine)]
        else:
            report_silent(server.profile, too_late(limit_s) if answer is None else answer)
    return found


def history_link(profile: str) -> str:
    """Return the link of the first history server of the user's profiles.

    Raises:
        NotFound: no history server is known. EngineUnavailable: a cluster that may have one does not answer.
    """
    for server in find_history_servers(profile):
        return server.find_link()
    raise NotFound(NO_SERVER)
