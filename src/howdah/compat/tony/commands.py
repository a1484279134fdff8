"""TonY's commands. They exit as TonY's did, with 0 or 255, and the job ends with the command."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import click

from howdah.cli.i18n import _
from howdah.cli.run import notice, upload_and_submit
from howdah.client.job_end import cancel_job, report_of
from howdah.client.submit import prepare
from howdah.compat import Parsed, engine_flags
from howdah.compat.submission import check_and_apply, exit_codes, verbatim_command
from howdah.errors import HowdahError, StagingError

FAILED = 255


@verbatim_command("tony")
def tony(argv: tuple[str, ...]) -> None:
    """Submit as TonY's submitters do: cluster (the default), local or notebook, or their class names."""
    from howdah.compat.tony.options import OPTIONS, mode
    from howdah.compat.tony.submit import Tony

    submitter, rest = mode(argv)
    if rest and rest[0].lstrip("-") in ("h", "help"):
        click.echo(f"howdah tony [cluster|local|notebook] {' '.join(f'[--{name} …]' for name in OPTIONS)}")
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
    interrupts = SubmitInterrupts()
    with exit_codes(FAILED, FAILED):
        try:
            _run(parse(), submitter, base_directory or Path.cwd(), interrupts)
        except KeyboardInterrupt:
            raise SystemExit(FAILED) from None


def _run(parsed: Parsed, submitter: str, base_directory: Path, interrupts: SubmitInterrupts) -> None:
    check_and_apply(parsed)
    flags: dict[str, str | None] = {"engine": "local"} if submitter == "local" else engine_flags()
    prepared = prepare(parsed.job, base_directory, flags, notice, origins=parsed.origins)
    interrupts.delayed = True
    job_id = upload_and_submit(prepared, check=interrupts.check)
    try:
        interrupts.delayed = False
        interrupts.check()
        click.echo(_("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
        from howdah.cli.follow import follow  # while the master starts
        from howdah.compat.tony.output import NotebookScreen, TaskScreen

        screen = NotebookScreen if submitter == "notebook" else TaskScreen
        follow(prepared.engine, job_id, "chief", "cancel", False, screen, await_engine=True)
    except KeyboardInterrupt:  # before the job was followed, or a second one
        notice(_("cancelling {id}", id=job_id))
        cancel_job(prepared.engine, report_of(prepared.engine, job_id))
        raise


class SubmitInterrupts:
    """Ends the job with the command: on Ctrl-C, a signal, or a closed terminal. While `delayed` is set, a job is being
    submitted that cannot be cancelled yet; files whose upload has begun are not removed."""

    def __init__(self) -> None:
        self.delayed = self.signalled = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, self._on_signal)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal to end has come."""
        if self.signalled:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, _: object) -> None:
        again, self.signalled = self.signalled, True
        if number == signal.SIGHUP:
            _detach_from_terminal()
        if not self.delayed and (number == signal.SIGINT or not again):  # a closed terminal sends two signals
            raise KeyboardInterrupt


def _detach_from_terminal() -> None:
    """Replace the closed terminal by /dev/null, because printing to it would raise an error."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError):  # the stream may be closed
            if stat.S_ISCHR(os.fstat(stream).st_mode):
                os.dup2(null, stream)
    os.close(null)


@click.command("import-history")
@click.argument("paths", nargs=-1, required=True)
@click.option("--to", "home", default="", help="Where to: the URI of an engine's home; this machine's, if not given.")
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
