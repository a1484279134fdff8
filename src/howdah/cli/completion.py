"""`howdah completion`, and what a shell completes: ids and names of jobs, their tasks, engines, frameworks, profiles,
settings."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence

import click
from click.shell_completion import CompletionItem, get_completion_class

from howdah import frameworks
from howdah.cli.i18n import examples
from howdah.client.clusters import describe_clusters, find_clusters
from howdah.client.engine_registry import settings_for
from howdah.client.follow import fetch_update
from howdah.client.job_names import LAST, find_job
from howdah.config.engine_settings import engine_names
from howdah.errors import HowdahError
from howdah.spec import JobReport
from howdah.storage.hdfs.call_timeout import CallTimeout, call_with_timeout

SHELLS = ["bash", "zsh", "fish"]
LIMIT_S = 2.0
"""Seconds that a cluster may take to answer while somebody waits for a completion."""
MAX_JOBS = 30
_PLAIN = re.compile(r"[\w.@+-]+")
"""Names without a special meaning for any shell, which puts them on the line unchanged."""
_TASKS_ARE_WORDS = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n"
"""Without this Bash would divide `worker:0` into three words."""
_VARIABLE = "_HOWDAH_COMPLETE"
"""Click derives this name from the name of the command."""


@click.command(
    epilog=examples(
        "howdah completion bash > ~/.local/share/bash-completion/completions/howdah",
        "howdah completion zsh > ~/.zfunc/_howdah      # fpath+=(~/.zfunc) in ~/.zshrc",
        "howdah completion fish > ~/.config/fish/completions/howdah.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script by which SHELL completes commands, options, jobs, tasks, engines and settings."""
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.get_current_context().find_root().command, {}, "howdah", _VARIABLE).source()
    click.echo(f"{_TASKS_ARE_WORDS}{script}" if shell == "bash" else script)


def complete_jobs(context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the ids of the newest jobs that begin with `begun`, else their names; `@last`."""
    jobs = list(_newest_jobs(str(context.params.get("profile") or "")))
    found = [CompletionItem(job.id, help=f"{job.name} {job.state.value}") for job in jobs if job.id.startswith(begun)]
    names = {job.name: None for job in jobs if begun and job.name.startswith(begun) and _PLAIN.fullmatch(job.name)}
    last = [CompletionItem(LAST)] if begun and LAST.startswith(begun) else []
    return [*found, *map(CompletionItem, names), *last]


def _newest_jobs(profile: str) -> Iterator[JobReport]:
    with contextlib.suppress(HowdahError, OSError):
        answers = describe_clusters(find_clusters("", profile), limit_s=LIMIT_S)
        reports = [report for answer in answers for report in answer.reports]
        yield from sorted(reports, key=lambda report: report.submitted, reverse=True)[:MAX_JOBS]


def complete_tasks(context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the tasks, and the roles, of the job that the command line names."""
    wanted, profile = context.params.get("job_id") or LAST, str(context.params.get("profile") or "")

    def words() -> list[str]:
        found = find_job(wanted, profile, limit_s=LIMIT_S)
        tasks = fetch_update(found.engine, found.id).view.tasks
        return [*dict.fromkeys(task.role for task in tasks), *map(str, tasks)]

    with contextlib.suppress(HowdahError, OSError, CallTimeout):
        return _beginning(begun, call_with_timeout(words, LIMIT_S))
    return []


def complete_engines(_context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the names of the installed engines that begin with `begun`."""
    return _beginning(begun, list(engine_names()))


def complete_frameworks(_context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the names of the known frameworks that begin with `begun`."""
    return _beginning(begun, list(frameworks.names()))


def complete_profiles(_context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the names of the user's profiles that begin with `begun`."""
    with contextlib.suppress(HowdahError):
        return _beginning(begun, list(settings_for({}).profiles))
    return []


def complete_settings(_context: click.Context, begun: str) -> list[CompletionItem]:
    """Return the names of the settings that begin with `begun`."""
    with contextlib.suppress(HowdahError):
        return _beginning(begun, list(settings_for({}, engine_names()).values))
    return []


def _beginning(begun: str, words: Sequence[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(begun)]


_BY_NAME: dict[str, Callable[[click.Context, str], list[CompletionItem]]] = {
    "job_id": complete_jobs,
    "job_ids": complete_jobs,
    "task": complete_tasks,
    "tasks": complete_tasks,
    "profile": complete_profiles,
    "--on": complete_engines,
    "--like": complete_jobs,
    "--framework": complete_frameworks,
    "key": complete_settings,
}
"""The completion of a parameter, by its name or an option's own name."""


def complete_parameters(command: click.Command) -> None:
    """Complete the parameters of a command, and of its sub-commands, by their names."""
    for parameter in command.params:
        named = [name for name in (parameter.name, *parameter.opts) if name in _BY_NAME]
        if named:
            parameter.shell_complete = _BY_NAME[named[0]]  # type: ignore[assignment, method-assign]
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete_parameters(below)
