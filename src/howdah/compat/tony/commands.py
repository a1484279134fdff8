"""TonY's commands. They exit as TonY's did, with 0 or 255, and the job ends with the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howdah.cli.i18n import _
from howdah.cli.interrupts import ENDING
from howdah.cli.run import notice, run_prepared
from howdah.client.submit import prepare
from howdah.compat import Parsed, engine_flags
from howdah.compat.submission import check_and_apply, exit_codes, show_usage, verbatim_command
from howdah.errors import HowdahError, StagingError

if TYPE_CHECKING:
    from howdah.compat.tony.output import TaskScreen

FAILED = 255


@verbatim_command("tony")
def tony(argv: tuple[str, ...]) -> None:
    """Submit as TonY's submitters do: cluster (the default), local or notebook, or their class names."""
    from howdah.compat.tony.options import OPTIONS, mode
    from howdah.compat.tony.submit import Tony

    submitter, rest = mode(argv)
    if rest and rest[0].lstrip("-") in ("h", "help"):
        words = ["[cluster|local|notebook]", *(f"[--{name} …]" for name in OPTIONS)]
        show_usage("howdah tony", words, "docs/coming-from-tony.md")
        return
    _exit_like_tony(lambda: Tony(hadoop=_hadoop()).parse(argv), submitter)


@click.command("azkaban-job", context_settings={"ignore_unknown_options": True})
@click.argument("files", nargs=-1, type=click.Path())
def azkaban_job(files: tuple[str, ...]) -> None:
    """Run the TonY job that Azkaban's properties in FILES describe; later files win."""
    from howdah.compat.tony.azkaban import AzkabanJob

    _exit_like_tony(
        lambda: AzkabanJob(hadoop=_hadoop()).parse(files), base_directory=Path(*files[:1]).absolute().parent
    )


def _hadoop() -> str:
    from howdah.client.engine_registry import settings_for

    return settings_for({})["hadoop_conf_dir"]


def _exit_like_tony(
    parse: Callable[[], Parsed], submitter: str = "cluster", base_directory: Path | None = None
) -> None:
    with exit_codes(FAILED, FAILED):
        try:
            _run(parse(), submitter, base_directory or Path.cwd())
        except KeyboardInterrupt:
            raise SystemExit(FAILED) from None


def _run(parsed: Parsed, submitter: str, base_directory: Path) -> None:
    """Submit and follow the job, which ends with the command: by Ctrl-C, a signal, or a closed terminal."""
    check_and_apply(parsed)
    flags: dict[str, str | None] = {"engine": "local"} if submitter == "local" else engine_flags()
    prepared = prepare(parsed.job, base_directory, flags, notice, origins=parsed.origins)

    def screen() -> TaskScreen:
        from howdah.compat.tony.output import NotebookScreen, TaskScreen  # while the master starts

        return NotebookScreen() if submitter == "notebook" else TaskScreen()

    run_prepared(prepared, "chief", "cancel", False, screen, await_engine=True, signals=ENDING)


@click.command("import-history")
@click.argument("paths", nargs=-1, required=True)
@click.option("--to", "home", default="", help="URI of an engine's home to import to; this machine's by default.")
def import_history(paths: tuple[str, ...], home: str) -> None:
    """Import TonY's .jhist files, or all those below a directory; `list` and `status` show them from then on."""
    from howdah.client.engine_registry import engine, settings_for
    from howdah.compat.tony.history import find_histories, read_history, write_history
    from howdah.spec import uris

    home = home or engine(settings_for({"engine": "local"})).home
    hadoop = _hadoop()
    found: list[str] = []
    problems: set[str] = set()

    def report(error: HowdahError) -> None:
        if str(error) not in problems:  # a missing fastavro is reported once, not for each file
            notice(f"howdah: {error}")
        problems.add(str(error))

    for path in paths:
        try:
            found += find_histories([path], hadoop)
        except HowdahError as error:
            report(error)
    for uri in found:
        try:
            job = read_history(uri, hadoop)
            name = uris.name(write_history(job, home, hadoop))
        except HowdahError as error:
            report(error)
            continue
        click.echo(_("{id}: {state}, {tasks} tasks", id=name, state=job.state.value, tasks=job.staged.job.task_count))
    if problems:
        raise SystemExit(StagingError.exit_code)
