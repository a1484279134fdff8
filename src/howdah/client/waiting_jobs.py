"""Asks masters whether their jobs wait for containers: to most engines a job runs as soon as its master does."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from howdah.client.clusters import ClusterAnswer, ConfiguredCluster, ask_at_once
from howdah.client.master_client import connect
from howdah.engines import Engine
from howdah.errors import HowdahError
from howdah.spec import JobReport, State
from howdah.spec.fold import fold
from howdah.wire.connection import WireError

LIMIT_S, MAX_ASKED = 3.0, 20
"""Seconds within which the masters of a cluster must have answered, and how many of its newest jobs are asked."""


def with_waits(clusters: Sequence[ConfiguredCluster], answers: Iterable[ClusterAnswer]) -> Iterator[ClusterAnswer]:
    """Yield the answers, in which jobs that wait for containers are PENDING, and say so."""
    answers = list(answers)
    questions = [
        functools.partial(_ask_masters, cluster.engine, answer.reports)
        for cluster, answer in zip(clusters, answers, strict=True)
    ]
    for answer, reports in zip(answers, ask_at_once(questions, LIMIT_S), strict=True):
        yield answer if reports is None else replace(answer, reports=reports)


def _ask_masters(engine: Engine, reports: Sequence[JobReport]) -> list[JobReport]:
    running = [each for each in reports if each.state is State.RUNNING and each.master and not engine.one_machine]
    asked = sorted(running, key=lambda report: report.started, reverse=True)[:MAX_ASKED]
    found = {report.id: _ask_master(engine, report) for report in asked}
    return [found.get(report.id, report) for report in reports]


def _ask_master(engine: Engine, report: JobReport) -> JobReport:
    """Return the report with the state that the job's master knows; as it is if the master does not say."""
    with contextlib.suppress(HowdahError, WireError):  # another user's job, or one that is just ending
        if (master := connect(engine, report)) is not None:
            with master:
                view = fold(master.events(0, 0.0).events)
            if view.tasks and view.outcome is None:
                said = view.waiting.sentence if view.waiting is not None else report.diagnostics
                return replace(report, state=view.state, diagnostics=said)
    return report
