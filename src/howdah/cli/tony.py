"""TonY's commands. They end as TonY's did: 0 or 255, and the job ends with the command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howdah.cli.language import say
from howdah.cli.run import notice, run_prepared
from howdah.client.jobfile import wrong
from howdah.client.prepare import prepare
from howdah.dialects import Parsed
from howdah.errors import HowdahError, SpecError, StagingError

if TYPE_CHECKING:
    from howdah.cli.show import Plain

FAILED = 255
_VERBATIM = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


@click.command("tony", context_settings=_VERBATIM, add_help_option=False)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def tony(argv: tuple[str, ...]) -> None:
    """Submit as TonY's submitters do: cluster (the default), local or notebook, or their class names."""
    from howdah.dialects.tony import OPTIONS, Tony, mode

    submitter, rest = mode(argv)
    if not rest or rest[0].lstrip("-") in ("h", "help"):
        click.echo(f"howdah tony [cluster|local|notebook] {' '.join(f'[--{name} …]' for name in OPTIONS)}")
        return
    _ending_as_theirs(
        lambda: Tony(hadoop=_hadoop()).parse(argv), "local" if submitter == "local" else "", submitter == "notebook"
    )


@click.command("azkaban-job")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def azkaban_job(files: tuple[str, ...]) -> None:
    """Run the TonY job that Azkaban's properties in FILES describe; later files win."""
    from howdah.dialects.tony.azkaban import AzkabanJob

    _ending_as_theirs(lambda: AzkabanJob(hadoop=_hadoop()).parse(files), base=Path(files[0]).absolute().parent)


def _hadoop() -> str:
    from howdah.client.engines import settings_for

    return settings_for({})["hadoop_conf_dir"]


def _ending_as_theirs(
    parse: Callable[[], Parsed], engine: str = "", notebook: bool = False, base: Path | None = None
) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends the command ends the job
    try:
        _run(parse(), engine, notebook, base or Path.cwd())
    except HowdahError as error:
        for line in str(error).splitlines():
            notice(f"howdah: {line}")
        raise SystemExit(FAILED) from None
    except SystemExit as ending:
        raise SystemExit(FAILED if ending.code else 0) from None


def _run(parsed: Parsed, engine: str, notebook: bool, base: Path) -> None:
    mistakes = wrong(parsed.job, parsed.origins)
    if mistakes:
        raise SpecError(mistakes)
    for note in parsed.notes:
        notice(f"howdah: {note}")
    chosen = engine or ("" if os.environ.get("HOWDAH_ENGINE") else "yarn")
    prepared = prepare(parsed.job, base, {"engine": chosen or None}, notice, origins=parsed.origins)
    run_prepared(prepared, "chief", "cancel", as_json=False, screen=lambda: _screen(notebook))


def _screen(notebook: bool) -> Plain:
    from howdah.cli.tony_screens import Notebook, Tasks  # when the job is on its way

    return Notebook() if notebook else Tasks()


@click.command("import-history")
@click.argument("paths", nargs=-1, required=True)
@click.option("--to", "home", default="", help="Where to: the URI of an engine's home; this machine's, if not given.")
def import_history(paths: tuple[str, ...], home: str) -> None:
    """Import TonY's .jhist files, or all those below a directory; `list` and `status` show them from then on."""
    from howdah.client.engines import engine, settings_for
    from howdah.data import uris
    from howdah.dialects.tony.history import histories, imported, kept

    wrong_files = 0
    home = home or engine(settings_for({"engine": "local"})).home
    hadoop = _hadoop()
    for uri in histories(paths, hadoop):
        try:
            job = imported(uri, hadoop)
            name = uris.name(kept(job, home, hadoop))
        except HowdahError as error:
            wrong_files += 1
            notice(f"howdah: {error}")
            continue
        click.echo(say("{id}: {state}, {tasks} tasks", id=name, state=job.state.value, tasks=job.staged.job.task_count))
    if wrong_files:
        raise SystemExit(StagingError.exit_code)
