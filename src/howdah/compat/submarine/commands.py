"""Submarine's commands `job run` and `job show`, and `job list` and `job kill`, which Submarine did not have."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howdah.cli.i18n import _
from howdah.cli.run import notice, run_prepared, submit_prepared
from howdah.client.engine_registry import settings_for
from howdah.client.recorded_files import find_submitted_job
from howdah.client.submit import prepare
from howdah.compat import engine_flags
from howdah.compat.submarine.job_run import Submarine, split_java_command
from howdah.compat.submarine.launch import CHECKPOINT_PATH, SAVED_MODEL_PATH
from howdah.compat.submarine.options import PAGE
from howdah.compat.submarine.placeholders import uses_default_checkpoint_path
from howdah.compat.submission import check_and_apply, verbatim_command
from howdah.config.job_file import to_yaml
from howdah.errors import JobCancelled, SpecError
from howdah.spec import JobReport, JobSpec, uris
from howdah.spec.validation import nearest

if TYPE_CHECKING:
    from howdah.cli.terminal import Plain

ACTIONS = ("run", "show", "list", "kill")
_LATER = (
    *("get", "create", "delete", "list", "config", "sandbox"),
    *("experiment", "notebook", "environment", "serve"),
)


@verbatim_command("submarine")
def submarine(argv: tuple[str, ...]) -> None:
    """Submit as Submarine 0.1 to 0.4 does: job run; and job show, list, kill by --name or id."""
    _, rest = split_java_command(argv)
    first, second = [*rest, "", ""][:2]
    if not rest or "help" in (first, second) or {*rest} & {"-h", "-help", "--help"}:
        from howdah.compat.submarine import help as submarine_help

        click.echo("\n".join(submarine_help.lines()))
    elif first.lstrip("-") == "version":
        from importlib.metadata import version

        click.echo(f"submarine: howdah {version('howdah')}")
    elif first in _LATER:
        raise SpecError.at(f"submarine {first}", f"is of Submarine 0.5 and later, whose server isn't here ({PAGE})")
    elif first != "job" or second not in ACTIONS:
        near = nearest(second, ACTIONS) if first == "job" else "job"
        raise SpecError.at(" ".join(rest[:2]), f"is not a command, there are job {', job '.join(ACTIONS)}", near)
    elif second == "run":
        _run(argv)
    else:
        from howdah.compat.submarine import job_commands

        {"show": job_commands.show, "list": job_commands.list_jobs, "kill": job_commands.kill}[second](rest[2:])


def _run(argv: Sequence[str]) -> None:
    reader = Submarine(hadoop=_hadoop())
    options = reader.read(argv)
    parsed = reader.job(options)
    check_and_apply(parsed)
    if options.given("verbose"):
        notice(to_yaml(parsed.job))
    if parsed.variables:
        _check_login(options.text("principal"))
    prepared = prepare(parsed.job, Path.cwd(), engine_flags(), notice, origins=parsed.origins)
    if uses_default_checkpoint_path(options):
        _check_checkpoint_is_free(prepared.engine.describe(), parsed.job)
    if not options.given("checkpoint_path"):
        _make_checkpoint_directory(parsed.job)
    if not options.given("wait_job_finish"):
        job_id = submit_prepared(prepared)
        click.echo(_("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
        return
    try:
        interrupt = "ask" if sys.stdin.isatty() else "detach"
        run_prepared(prepared, "chief", interrupt, False, screen=lambda: _screen(parsed.job))
    except SystemExit as leaving:
        if leaving.code != JobCancelled.exit_code or not options.given("legacy"):  # Submarine exited with 0 then
            raise


def _check_checkpoint_is_free(jobs: Iterable[JobReport], job: JobSpec) -> None:
    """Refuse the default checkpoint path while a job of that name may write there."""
    path = job.links.get(CHECKPOINT_PATH, "")
    if not path:  # only roles without tasks name it
        return
    unfinished = (other for other in jobs if other.name == job.name and not other.state.ended)
    running = next((other.id for other in unfinished if _may_write_to(path, other)), "")
    if running:
        raise SpecError.at(
            "--name",
            f"is {job.name!r}, and {running} of that name may write to the same checkpoint path until it ends: "
            "give another name, or a --checkpoint_path",
        )


def _may_write_to(path: str, job: JobReport) -> bool:
    """Return whether a job may write to this path: it has the path as its checkpoint or saved-model path, or its paths
    are not known."""
    submitted = find_submitted_job(job)
    if submitted is None or not isinstance(submitted.links, dict):
        return True
    theirs = {str(submitted.links.get(label, "")).rstrip("/") for label in (CHECKPOINT_PATH, SAVED_MODEL_PATH)}
    return not theirs.isdisjoint({path, uris.path(path) if uris.has_scheme(path) else path})


def _make_checkpoint_directory(job: JobSpec) -> None:
    """Make the default checkpoint directory, because programs expect it to exist."""
    path = job.links.get(CHECKPOINT_PATH, "")
    if path:
        from howdah.spec import uris
        from howdah.storage.factory import filesystem

        uri = path if uris.has_scheme(path) else uris.of_local(Path(path))
        filesystem(uri, _hadoop()).mkdirs(uri)


def _screen(job: JobSpec) -> Plain:
    from howdah.compat.submarine.job_commands import LinkScreen  # while the master starts

    return LinkScreen(job)


def _check_login(principal: str) -> None:
    """Refuse a principal that differs from that of the keytab."""
    from howdah.hadoop import conf, gss, identity

    if not identity.is_secure(conf.load(conf.directory(_hadoop()))):
        return
    holder = gss.ticket_holder()
    if holder not in ("", principal) and holder.partition("@")[0] != principal:
        raise SpecError.at("--principal", f"is {principal!r}, but the keytab's first key is that of {holder!r}")


def _hadoop() -> str:
    return settings_for(engine_flags())["hadoop_conf_dir"]
