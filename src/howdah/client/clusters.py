"""Finds the clusters of the user's profiles, and asks them for jobs, all at the same time."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import field
from typing import TypeVar

from howdah.client.engine_registry import engine, engine_info, settings_for
from howdah.config.settings import Settings
from howdah.engines import Engine
from howdah.engines.info import EngineInfo, known, name_of_id
from howdah.errors import EngineUnavailable, HowdahError, JobNotFound, SpecError
from howdah.spec import JobReport
from howdah.spec.message import message
from howdah.spec.values import dataclass

T = TypeVar("T")
ReportUnusable = Callable[[str, str, HowdahError], None]
"""Is called with an engine (or "" for all), a profile, and why the profile does not lead to a cluster of the engine."""

LIMIT_S = 10.0
"""How long a cluster may take to answer."""


@dataclass(frozen=True)
class ConfiguredCluster:
    """An engine as one of the user's profiles leads to it."""

    engine: Engine
    """The engine with the settings of the profile."""
    profile: str = ""
    """The first profile that leads there; "" for settings without a profile."""


@dataclass(frozen=True)
class ClusterAnswer:
    """A cluster's answer about its jobs."""

    engine: str
    """The name of the engine that was asked."""
    profile: str
    """The profile that leads to the cluster."""
    reports: list[JobReport] = field(default_factory=list)
    """The user's jobs, as the cluster describes them."""
    error: HowdahError | None = None
    """Why the cluster did not answer, or why the profile leads nowhere."""

    @property
    def place(self) -> str:
        """Return the engine and the profile, as an error names the cluster: the engine, then `, profile backup`."""
        return f"{self.engine}, profile {self.profile}" if self.profile else self.engine


@dataclass(frozen=True)
class ConfiguredEngine:
    """An engine that a profile names or has settings for. The libraries that it needs may be missing."""

    name: str
    """The name by which `--on` chooses the engine."""
    info: EngineInfo
    """The engine's own description: its classes, settings and checks."""
    settings: Settings
    """All settings with this profile."""


def find_configured_engines(
    name: str = "", profile: str = "", report_unusable: ReportUnusable = lambda *_: None, with_jobs: bool = False
) -> Iterator[ConfiguredEngine]:
    """Yield the named engine, or all, once for each of the user's profiles that names it or has settings for it: first
    for the profile in use. With `profile` only this one counts. `with_jobs` adds engines that may have jobs without.

    `report_unusable` is called for each other profile whose settings are wrong.

    Raises:
        SpecError: no engine has that name, or the settings of the profile in use are wrong.
    """
    infos = [(name, engine_info(name))] if name else list(known())  # once: the search for packages takes 10 ms
    settings = settings_for({"profile": profile})
    others = () if profile else (each for each in settings.profiles if each != settings.profile)
    for each in (settings.profile, *others):
        try:
            yield from _configured_engines_of_profile(infos, each, with_jobs)
        except HowdahError as error:
            if each == settings.profile:
                raise
            report_unusable("", each, error)


def _configured_engines_of_profile(
    infos: Sequence[tuple[str, EngineInfo]], profile: str, with_jobs: bool
) -> list[ConfiguredEngine]:
    named = settings_for({"profile": profile})["engine"]
    engine_info(named)
    found = (ConfiguredEngine(name, info, settings_for({"engine": name, "profile": profile})) for name, info in infos)
    return [each for each in found if each.name == named or _counts(each, with_jobs)]


def _counts(each: ConfiguredEngine, with_jobs: bool) -> bool:
    values = each.settings.values
    return each.info.is_configured(values) or (with_jobs and each.info.may_have_jobs(values))


def find_clusters(
    name: str = "", profile: str = "", report_unusable: ReportUnusable = lambda *_: None
) -> list[ConfiguredCluster]:
    """Return the clusters of the named engine, or of all engines, to which the user's profiles lead, each once; those
    of the profile in use come first. With `profile` only that profile is used.

    `report_unusable` is called for each profile that does not lead to a cluster of an engine for which it has settings.

    Raises:
        SpecError: no engine has that name, or the settings of the profile in use are wrong.
        HowdahError: an engine was named, and the profile in use, which has settings for it, leads to no cluster of it.
    """
    in_use = settings_for({"profile": profile}).profile
    found: dict[tuple[str, str], ConfiguredCluster] = {}
    for each in find_configured_engines(name, profile, report_unusable, with_jobs=True):
        try:
            made = engine(each.settings)
            found.setdefault((made.name, made.cluster), ConfiguredCluster(made, each.settings.profile))
        except HowdahError as error:
            if name and each.settings.profile == in_use:
                raise
            report_unusable(each.name, each.settings.profile, error)
    if name and not found:  # the engine says what is not configured
        return [ConfiguredCluster(engine(settings_for({"engine": name, "profile": profile})), in_use)]
    return list(found.values())


def describe_clusters(
    clusters: Sequence[ConfiguredCluster], job_id: str | None = None, limit_s: float = LIMIT_S
) -> Iterator[ClusterAnswer]:
    """Yield the answers of the clusters in their order: the reports of that job, or of all of this user's jobs.

    They are asked at the same time, and each has `limit_s` seconds to answer. This machine's jobs are read by the
    calling thread, because what a thread starts may end with the thread.
    """
    here = [number for number, cluster in enumerate(clusters) if cluster.engine.one_machine]
    questions = [functools.partial(_ask, cluster, job_id) for cluster in clusters]
    for cluster, answer in zip(clusters, ask_at_once(questions, limit_s, here), strict=True):
        yield answer or ClusterAnswer(cluster.engine.name, cluster.profile, error=too_late(limit_s))


def ask_at_once(questions: Sequence[Callable[[], T]], limit_s: float, here: Sequence[int] = ()) -> Iterator[T | None]:
    """Call all questions at the same time, and yield their answers in order; None for a question that takes longer than
    `limit_s`. The questions whose numbers are in `here` are called by the calling thread."""
    answers: list[Future[T]] = [Future() for _ in questions]

    def ask(number: int) -> None:
        try:
            answers[number].set_result(questions[number]())
        except BaseException as error:
            answers[number].set_exception(error)

    deadline = time.monotonic() + limit_s
    for number in sorted(set(range(len(questions))).difference(here)):
        threading.Thread(target=ask, args=(number,), name="ask", daemon=True).start()
    for number in here:
        ask(number)
    for answer in answers:
        try:
            yield answer.result(max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            yield None


def too_late(limit_s: float) -> EngineUnavailable:
    """Return the error of a cluster or server that has not answered within `limit_s`."""
    return EngineUnavailable(message("no answer within {seconds} s", seconds=f"{limit_s:g}"))


def engine_of(job_id: str, profile: str = "") -> Engine:
    """Return the engine of a job's id; for an id of an unknown form, the configured engine.

    If profiles lead to several clusters of the engine and `profile` chooses none, return the engine with the settings
    of the cluster that has the job. The cluster of the profile in use is asked first.

    Raises:
        SpecError: the profile in use does not lead to the job, and several others lead to jobs of this id.
        JobNotFound: the id is empty, as a script's is when its submission has failed.
    """
    if not job_id.strip(" ."):
        raise JobNotFound(f"no job {job_id!r}; `howdah list` shows yours")
    name = name_of_id(job_id)
    settings = settings_for({"engine": name or None, "profile": profile})
    if name and not profile and set(settings.profiles).difference([settings.profile]):
        found = _find_cluster_of(job_id, name)
        if found is not None:
            return found
    return engine(settings)


def _find_cluster_of(job_id: str, name: str) -> Engine | None:
    """Return the named engine with the settings with which the job is found; None if no cluster has the job. If there
    is only one cluster, it is not asked."""
    clusters = find_clusters(name)
    if len(clusters) == 1:
        return clusters[0].engine
    in_use = settings_for({}).profile
    first = [cluster for cluster in clusters if cluster.profile == in_use]
    others = [cluster for cluster in clusters if cluster.profile != in_use]
    silent: list[ClusterAnswer] = []
    for group in (first, others):
        answers = list(describe_clusters(group, job_id)) if group else []
        found: dict[str, ConfiguredCluster] = {}
        for cluster, answer in zip(group, answers, strict=True):
            if answer.reports:  # clusters with the same home have the same job there
                found.setdefault(cluster.engine.home, cluster)
        if len(found) > 1:
            names = ", ".join(cluster.profile for cluster in found.values())
            raise SpecError.at("--profile", f"must say which {job_id} is meant: the profiles {names} have one each")
        if found:
            return next(iter(found.values())).engine
        silent += [answer for answer in answers if answer.error is not None]
    if silent:
        reasons = "; ".join(f"{answer.place}: {answer.error}" for answer in silent)
        raise EngineUnavailable(f"{job_id} is on no cluster that answers, and not all do: {reasons}")
    return None


def _ask(cluster: ConfiguredCluster, job_id: str | None) -> ClusterAnswer:
    try:
        return ClusterAnswer(cluster.engine.name, cluster.profile, cluster.engine.describe(job_id))
    except HowdahError as error:
        return ClusterAnswer(cluster.engine.name, cluster.profile, error=error)
