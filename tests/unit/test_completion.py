"""Tests what a shell completes for a parameter."""

from __future__ import annotations

import click

from howdah.cli import completion
from howdah.cli.run import plan, run
from howdah.cli.submit import submit
from howdah.frameworks import BUILT_IN


def option(command: click.Command, name: str) -> click.Parameter:
    return next(parameter for parameter in command.params if name in parameter.opts)


def completed(command: click.Command, name: str, begun: str) -> list[str]:
    context = command.make_context("run", [], resilient_parsing=True)
    return [item.value for item in option(command, name).shell_complete(context, begun)]


def test_frameworks_are_completed() -> None:
    completion.complete_parameters(run)
    assert completed(run, "--framework", "pyt") == ["pytorch"]
    assert set(BUILT_IN) <= set(completed(run, "--framework", ""))
    assert completed(run, "--framework", "nothing") == []


def test_an_earlier_job_is_completed_as_jobs_are() -> None:
    for command in (run, submit, plan):
        completion.complete_parameters(command)
        assert option(command, "--like").shell_complete is completion.complete_jobs
