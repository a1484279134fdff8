"""Asks masters whether their jobs wait for containers: most engines report a job as running as soon as its master
runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from howdah.client.clusters import ClusterAnswer, ConfiguredCluster, ask_at_once
from howdah.client.master_client import connect
from howdah.engines import Engine
from howdah.spec import JobReport, State
from howdah.spec.fold import fold

LIMIT_S, MAX_ASKED = 3.0, 20
"""Seconds within which masters must have answered, and the most jobs of a cluster, the newest, whose masters are
asked."""


def with_waits(clusters: Sequence[ConfiguredCluster], answers: Iterable[ClusterAnswer]) -> Iterator[ClusterAnswer]:
    """Yield the answers with corrected states: jobs that wait for containers are PENDING, and say so."""
    answers = list(answers)
    asked = [
        (number, cluster.engine, report)
        for number, (cluster, answer) in enumerate(zip(clusters, answers, strict=True))
        for report in _running_jobs(cluster.engine, answer.reports)
    ]
    questions = [functools.partial(_ask_master, engine, report) for _, engine, report in asked]
    found = {
        (number, report.id): answer
        for (number, _, report), answer in zip(asked, ask_at_once(questions, LIMIT_S), strict=True)
        if answer is not None
    }
    for number, answer in enumerate(answers):
        yield replace(answer, reports=[found.get((number, report.id), report) for report in answer.reports])


def _running_jobs(engine: Engine, reports: Sequence[JobReport]) -> list[JobReport]:
    running = [each for each in reports if each.state is State.RUNNING and each.master and not engine.one_machine]
    return sorted(running, key=lambda report: report.started, reverse=True)[:MAX_ASKED]


def _ask_master(engine: Engine, report: JobReport) -> JobReport:
    """Return the report with the state that the job's master reports; unchanged if the master does not answer."""
    with contextlib.suppress(Exception):  # another user's job, one that is just ending, another version's master
        if (master := connect(engine, report)) is not None:
            with master:
                view = fold(master.events(0, 0.0).events)
            if view.tasks and view.outcome is None:
                said = view.waiting.sentence if view.waiting is not None else report.diagnostics
                return replace(report, state=view.state, diagnostics=said)
    return report
