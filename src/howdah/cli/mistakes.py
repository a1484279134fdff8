"""Translates mistakes in job files, settings and command lines, and click's own words, into the chosen language. Other
errors stay English, because people search for them. In Chinese a mistake keeps its place and the values that the user
wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

import click

from howdah.cli.i18n import _, language
from howdah.errors import EngineUnavailable, HowdahError, Mistake, RequestRefused, SpecError, StagingError

_READ_JOB_FILES = ("run", "submit", "plan")


def error_lines(error: HowdahError) -> list[str]:
    """Return the lines that are shown for an error: a line for each mistake, and a line about ended daemons of the
    sandbox."""
    return [*_error_lines(error), *_ended_daemons(error)]


def _error_lines(error: HowdahError) -> list[str]:
    if language() == "zh" and isinstance(error, SpecError):
        return [line for mistake in error.mistakes for line in _chinese(mistake).splitlines()]
    if language() == "zh" and isinstance(error, (StagingError, RequestRefused)):
        return [problem_in_chinese(line) for line in str(error).splitlines()]
    return str(error).splitlines()


def _ended_daemons(error: HowdahError) -> list[str]:
    """Return the daemons of the sandbox that have ended, if no cluster answers or none is configured."""
    unknown = isinstance(error, SpecError) and error.mistakes[0].place == "HADOOP_CONF_DIR"
    if not unknown and not isinstance(error, EngineUnavailable):
        return []
    from howdah.cli.sandbox import ended_daemons

    with contextlib.suppress(HowdahError):
        return list(filter(None, [ended_daemons()]))
    return []


def problem_in_chinese(problem: str) -> str:
    """Return a problem in Chinese if its template is known; otherwise as it is."""
    from howdah.locale.catalogue import MISTAKE  # English needs no catalogue
    from howdah.locale.stored_sentences import in_chinese

    return in_chinese(problem, MISTAKE)


def _chinese(mistake: Mistake) -> str:
    hint = f"（是不是 {mistake.nearest!r}？）" if mistake.nearest else ""
    origin = f"（{mistake.origin}）" if mistake.origin and mistake.place else ""
    return f"{mistake.place or mistake.origin or ''}：{problem_in_chinese(mistake.problem)}{hint}{origin}"


def show_usage_error(error: click.ClickException, words: Sequence[str]) -> None:
    """Print what is wrong with a command line, which has these words, as click does."""
    hint = ""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        error, hint = name_what_is_meant(error, error.ctx.command)
    _show_as_click(error)
    if hint:
        click.echo(hint, err=True)
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.command.name in _READ_JOB_FILES:
        from howdah.config.job_file import PROGRAMS, refuse_program

        own = takewhile(lambda word: word != "--", words)
        program = next((word for word in own if Path(word).suffix in PROGRAMS and Path(word).is_file()), None)
        if program is not None:  # the unknown option was meant for this program
            (line,) = error_lines(refuse_program(Path(program)))
            click.echo(line, err=True)


def name_what_is_meant(error: click.NoSuchOption, command: click.Command) -> tuple[click.NoSuchOption, str]:
    """Return the error with the option of the command by which another launcher's option, such as `--num-nodes`, is
    written here, and what else helps, "" if nothing is known."""
    from howdah.config.spec_reader import meant_key

    name = error.option_name
    key = name.lstrip("-").replace("-", "_")
    meant = f"--{meant_key(key)}"
    options = {option for parameter in command.params for option in parameter.opts}
    if meant != f"--{key}" and (known := {meant, meant.removesuffix("s")} & options):
        text = f"No such option {name!r}. Did you mean {min(known)!r}?"  # as click writes it
        return click.NoSuchOption(name, text, ctx=error.ctx), ""
    if command.name in ("run", "plan") and key == "grid":
        return click.NoSuchOption(name, ctx=error.ctx), _(
            "`howdah submit --grid` takes it; `--wait` waits for its jobs"
        )
    if command.name != "run" or key not in ("d", "detach", "wait", "follow", "f"):
        return error, ""
    bare = click.NoSuchOption(name, ctx=error.ctx)
    if key in ("d", "detach"):
        return bare, _("`howdah submit` does not wait for the job's end")
    return bare, _("`howdah run JOB_FILE` follows the job to its end without an option")


def _show_as_click(error: click.ClickException) -> None:
    if language() != "zh":
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(context.get_usage(), err=True)
        click.echo(_("Try '{command} --help' for help.", command=context.command_path) + "\n", err=True)
    click.echo(_("Error: {problem}", problem=problem_in_chinese(error.format_message())), err=True)


class HelpFormatter(click.HelpFormatter):
    """Click's formatter, with its own words in the chosen language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that shows how the command is called."""
        super().write_usage(prog, args, _("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        """Write the title of a section."""
        super().write_heading({"Options": _("Options"), "Commands": _("Commands")}.get(heading, heading))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options or commands, each with its help."""
        own = {
            "Show this message and exit.": _("Show this message and exit."),
            "Show the version and exit.": _("Show the version and exit."),
        }
        found = [(name, own.get(text, text).replace("[default: ", _("[default: "))) for name, text in rows]
        super().write_dl(found, col_max, col_spacing)
