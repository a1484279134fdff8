"""The arguments of `run`, `submit`, `plan` and `init`: a job file, or a command after `--` with a few options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _
from howdah.client.command_job import CommandOptions, load_command
from howdah.config.job_file import LoadedJob, load
from howdah.config.spec_reader import keys_of
from howdah.engines.info import GROUP
from howdah.errors import SpecError
from howdah.spec import JobSpec, plugins
from howdah.spec.validation import VARIABLE

WORDS = "howdah.words"
"""The key in the context of the words after `--`."""
OWN_WORDS = "howdah-own-words"
"""The key in the context of the words that the user himself has given, if howdah has added others: only these may name
files of the user."""
ARGUMENTS = "howdah-arguments"
"""The key in the context of all arguments, as they were typed."""
DIRECTORY = "howdah-directory"
"""The key in the context of the directory at which relative paths of a command start, if it is not the current one."""


class CommandWithProgram(click.Command):
    """A command that keeps the words after `--` unchanged, as a program and its arguments."""

    program_usage = ""
    """How the usage shows the program; "" for a program or a job file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what comes before `--`, as click does."""
        ctx.meta[ARGUMENTS] = list(args)
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS], args = tuple(args[at + 1 :]), args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage: options, arguments and the program."""
        pieces = super().collect_usage_pieces(ctx)
        if self.program_usage:
            return [*pieces, self.program_usage]
        return [*pieces[:-1], f"({pieces[-1]} | -- COMMAND [ARGUMENT]…)"]


def program_words() -> tuple[str, ...] | None:
    """Return the words after `--`; None if there was no `--`."""
    words: tuple[str, ...] | None = click.get_current_context().meta.get(WORDS)
    return words


def command_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job without a file; each option is a field of the spec."""
    for option in (
        click.option("--conda", default="", metavar="NAME", help="Conda environment to run COMMAND with."),
        click.option(
            "--requirements", default="", metavar="FILE", help="Requirements, pyproject.toml or uv.lock for COMMAND."
        ),
        click.option(
            "--output",
            "outputs",
            multiple=True,
            metavar="PATH[#DIR]",
            help="Keep the DIR or file that COMMAND makes at PATH.",
        ),
        click.option(
            "--input", "inputs", multiple=True, metavar="PATH[#DIR]", help="Give COMMAND the data at PATH in DIR."
        ),
        click.option(
            "--secret",
            "secrets",
            multiple=True,
            metavar="NAME",
            help="A variable from here, kept out of logs and page.",
        ),
        click.option(
            "--env-file", "env_files", multiple=True, metavar="FILE", help="Variables of COMMAND, one a line."
        ),
        click.option("--env", multiple=True, metavar="NAME[=VALUE]", help="A variable of COMMAND, or its value here."),
        click.option("--file", "files", multiple=True, metavar="PATH[#NAME]", help="File or directory to send along."),
        click.option("--framework", default="", help="Framework of COMMAND, such as pytorch."),
        click.option("--vcores", default="", metavar="N", help="Virtual cores of each task."),
        click.option("--memory", default="", help="Memory of each task, such as 2GiB."),
        click.option("--gpus", default="", metavar="N", help="GPUs of each task."),
        click.option("--replicas", default="", metavar="N", help="How many tasks run COMMAND."),
    ):
        command = option(command)
    return command


class EngineOption(click.Option):
    """An option whose help lists the installed engines in place of `{engines}`."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        engines = ", ".join(plugins.names(GROUP))  # read for the help alone: it takes 14 ms and more
        self.help = (self.help or "").replace("{engines}", engines)
        return super().get_help_record(ctx)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that takes a job, and the argument for its file."""
    command = click.option("--json", "as_json", is_flag=True, help="JSON, for programs.")(command)
    command = click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")(command)
    command = click.option("--stdin", is_flag=True, help="Send standard input along, for each task to read.")(command)
    command = click.option(
        "--like", default="", metavar="JOB_ID", help="Take the file and values of an earlier job, and its engine."
    )(command)
    command = options_without_file(command)
    # Any number: a second one was meant as the program's argument, and the error can say so.
    return click.argument("job_files", nargs=-1, metavar="JOB_FILE", type=click.Path(path_type=Path))(command)


def options_without_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that makes a job from a command."""
    for option in (
        click.option("--queue", default="", help="Queue of the job, instead of the job file's."),
        click.option("-n", "--name", default="", help="Name of the job, instead of the job file's."),
        click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A variable or field of the job."),
        click.option("--profile", default="", help="A profile of your configuration."),
        click.option("--on", "engine", default="", metavar="ENGINE", cls=EngineOption, help="One of {engines}."),
    ):
        command = option(command)
    return command_options(command)


def fresh_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option of commands that submit a job with a checkpoint."""
    return click.option("--fresh", is_flag=True, help="Begin without the checkpoint, which is renamed.")(command)


def dry_run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option by which commands that submit a job only show what they would do."""
    return click.option("--dry-run", is_flag=True, help="Show what would be done, as `howdah plan` does.")(command)


def chosen_job(
    job_files: tuple[Path, ...],
    options: CommandOptions,
    sets: tuple[str, ...],
    fields: dict[str, str],
    notice: Callable[[str], None],
    varied: Sequence[str] = (),
) -> tuple[LoadedJob, Path | None]:
    """Return the job, and its file if it has one. `varied` are names in `sets` that are variables of a command, if they
    are no fields of a job.

    Raises:
        click.UsageError: there is neither a file nor a command, or both.
        SpecError, StagingError: what is wrong with it.
    """
    words = program_words()
    if words is not None:
        if job_files:
            raise click.UsageError(_("a job file or a command, not both: leave out {name}", name=job_files[0]))
        if not words:
            raise click.UsageError(_("after -- comes the command, such as: -- python train.py"))
        meta = click.get_current_context().meta
        base_directory, own = Path(meta.get(DIRECTORY) or Path.cwd()), meta.get(OWN_WORDS, words)
        variables = [name for name in varied if VARIABLE.fullmatch(name) and name not in keys_of(JobSpec)]
        return load_command(words, options, base_directory, pairs(sets), fields, notice, own, variables), None
    if len(job_files) != 1:
        usage = _("give a job file, or a command after --, such as: howdah run -- python train.py")
        raise click.UsageError(usage)
    if options.given:
        first = options.given[0]
        raise click.UsageError(_("{option} is for a command after --; a job file's fields are --set", option=first))
    return load(job_files[0], pairs(sets), fields=fields), job_files[0]


def refuse_beside_like(job_files: tuple[Path, ...], options: CommandOptions, has_stdin: bool) -> None:
    """Refuse a job file, a command, and options of a command, if they are given together with an earlier job.

    Raises:
        click.UsageError: there is one.
    """
    given = [*map(str, job_files), *(["--"] if program_words() is not None else []), *options.given]
    given += ["--stdin"] if has_stdin else []
    if given:
        raise click.UsageError(_("--like stands for a job file or a command: leave out {name}", name=given[0]))


def pairs(sets: tuple[str, ...]) -> dict[str, str]:
    """Return the values of `--set` by name.

    Raises:
        SpecError: one is no NAME=VALUE.
    """
    found = {}
    for text in sets:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise SpecError.at("--set", f"is {text!r}, must be NAME=VALUE")
        found[name] = value
    return found
