"""The command line. A sub-command's module is imported when it is used, so that `howdah --help` stays quick."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from howdah.cli import streams
from howdah.cli.i18n import _, choose, localise
from howdah.cli.interrupts import RaisedInterrupts
from howdah.cli.mistakes import HelpFormatter, error_lines, show_usage_error
from howdah.errors import HowdahError, StagingError
from howdah.localfiles.file_errors import explain

_OF_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES)
"""Errors that are caused by the name of a file that the user has given, whichever code opens it first."""

COMMANDS = {
    "run": ("howdah.cli.run:run", "Run a job and follow it; exits with its result."),
    "submit": ("howdah.cli.submit:submit", "Submit a job and print its id."),
    "attach": ("howdah.cli.attach:attach", "Follow a job that was submitted before."),
    "wait": ("howdah.cli.wait:wait", "Wait until jobs have ended; exits with their result."),
    "init": ("howdah.cli.init:init", "Write a job file for a program."),
    "plan": ("howdah.cli.run:plan", "Show what submit would do, and change nothing."),
    "list": ("howdah.cli.jobs:list_jobs", "List your jobs."),
    "status": ("howdah.cli.jobs:status", "Show a job and its tasks."),
    "logs": ("howdah.cli.logs:logs", "Print the logs of a job or a task."),
    "save": ("howdah.cli.save:save", "Take a snapshot of a running job's outputs."),
    "tensorboard": ("howdah.cli.tensorboard:tensorboard", "TensorBoard of a job, or of all jobs."),
    "stacks": ("howdah.cli.stacks:stacks", "The stacks of a job's programs: what they do now."),
    "explain": ("howdah.cli.explain:explain", "Why a job waits, failed, or started again."),
    "bundle": ("howdah.cli.bundle:bundle", "One file about a job, for people who help you."),
    "doctor": ("howdah.cli.doctor:doctor", "Check this machine's and the cluster's set-up."),
    "notebook": ("howdah.interactive.notebook:notebook", "JupyterLab on a machine of the cluster."),
    "shell": ("howdah.interactive.shell:shell", "A machine for a while, or a shell in a running task."),
    "extend": ("howdah.interactive.shell:extend", "More time for a notebook or a shell."),
    "exec": ("howdah.interactive.commands:run_in_task", "Run a command in a running task."),
    "cp": ("howdah.interactive.commands:cp", "Copy files from or to a running task."),
    "forward": ("howdah.interactive.commands:forward", "Forward a port of this machine to a running task."),
    "ssh-proxy": ("howdah.interactive.ssh_proxy:ssh_proxy", "Lets ssh and editors enter a running task."),
    "cancel": ("howdah.cli.jobs:cancel", "End jobs."),
    "note": ("howdah.cli.annotate:note", "The note and the tags of a job."),
    "archive": ("howdah.cli.annotate:archive", "Hide jobs from lists, or bring them back."),
    "page": ("howdah.cli.page:page", "A link to a job's page."),
    "history": ("howdah.cli.history:history", "The page of all jobs."),
    "trace": ("howdah.cli.trace:trace", "Find the job that a container, process or GPU belongs to."),
    "data": ("howdah.cli.data:data", "Files on HDFS: ls, get, put, head, rm."),
    "sandbox": ("howdah.cli.sandbox:sandbox", "A real Hadoop, Slurm, Kubernetes or Spark on this machine."),
    "kernel": ("howdah.jupyter.commands:kernel", "Notebook kernels that run as jobs."),
    "config": ("howdah.cli.config:config", "Show and change settings."),
    "completion": ("howdah.cli.completion:completion", "Completion of commands, jobs and tasks for your shell."),
    "schema": ("howdah.cli.run:schema", "Print the JSON Schema of job files."),
    "tony": ("howdah.compat.tony.commands:tony", "TonY's submit commands."),
    "azkaban-job": ("howdah.compat.tony.commands:azkaban_job", "A TonY job from Azkaban's properties."),
    "import-history": ("howdah.compat.tony.commands:import_history", "Import TonY's history into howdah's."),
    "xl-submit": ("howdah.compat.xlearning.commands:xl_submit", "XLearning's submit command."),
    "hbox-submit": ("howdah.compat.xlearning.commands:hbox_submit", "HBox's submit command."),
    "submarine": ("howdah.compat.submarine.commands:submarine", "Submarine's job run, show, list, kill."),
    "convert": ("howdah.compat.convert:convert", "Another system's command line, as a job file."),
}

ALIASES = {"ls": "list", "ps": "list", "stop": "cancel"}
"""The names that other launchers use for a command."""

MEANT = {
    **dict.fromkeys(("launch", "start"), "run"),
    **dict.fromkeys(("apply", "create"), "submit"),
    **dict.fromkeys(("delete", "down", "kill", "rm"), "cancel"),
    **dict.fromkeys(("get", "queue", "squeue", "jobs"), "list"),
    **dict.fromkeys(("describe", "top"), "status"),
    **dict.fromkeys(("dashboard", "ui"), "page"),
    **dict.fromkeys(("events", "why"), "explain"),
    "check": "doctor",
    "port-forward": "forward",
}
"""Commands of other launchers that are no aliases here, because they do not do quite the same, and what is meant."""

COMPLETION = "_HOWDAH_COMPLETE"
"""The variable by which a shell asks for completions: click derives its name from that of the command."""
GC_THRESHOLD = 20_000
"""New objects between two garbage collections. Imports leave no garbage, and a collection after each 700 objects takes
a twentieth of a command's time."""


class LazyGroup(click.Group):
    """The group of all commands: it knows them by name and summary, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        localise(command)
        if COMPLETION in os.environ:
            from howdah.cli.completion import complete_parameters  # for the shell alone

            complete_parameters(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete the name of a command without importing all of them."""
        from click.shell_completion import CompletionItem

        named = {**COMMANDS, **{alias: COMMANDS[name] for alias, name in ALIASES.items()}}
        found = [CompletionItem(name, help=_(help)) for name, (_module, help) in named.items()]
        return [
            *(item for item in found if item.value.startswith(incomplete)),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Make the context as click does; `--help` is printed in this step."""
        with streams.ended_by_streams():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> object:
        """Invoke the command as click does. Click alone would exit with a failed job's status if no process reads
        the output."""
        with streams.ended_by_streams():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does; `help COMMAND` is `COMMAND --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; for a misspelt name suggest the nearest one."""
        if args and args[0] not in (*COMMANDS, *ALIASES) and not args[0].startswith("-"):
            from howdah.spec.validation import nearest  # takes longer than to print the help

            near = MEANT.get(args[0]) or nearest(args[0], COMMANDS)
            hint = f" {_('Did you mean {nearest}?', nearest=near)}" if near else ""
            ctx.fail(_("No command {name}.", name=repr(args[0])) + hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands, without importing them."""
        with formatter.section(_("Commands")):
            formatter.write_dl([(name, _(summary)) for name, (module, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="howdah")
def cli() -> None:
    """Distributed training on this machine and on clusters: one job file, one command."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line with these arguments, or the process's own.

    An error that people can act on is one line. Any other error is a bug: it keeps its traceback, and ends the process
    with a status that no job's end has.
    """
    gc.set_threshold(GC_THRESHOLD)
    with streams.exit_without_output():
        try:
            _run(argv)
        except Exception:
            import traceback  # takes longer than to print the help

            with streams.stderr_may_be_full():
                traceback.print_exc()
            sys.exit(HowdahError.exit_code)


def _run(argv: Sequence[str] | None) -> None:
    try:
        with RaisedInterrupts():
            streams.prepare()
            choose()
            localise(cli)
            click.Context.formatter_class = HelpFormatter
            colours = False if os.environ.get("NO_COLOR") else None
            sys.exit(cli.main(argv, standalone_mode=False, color=colours))
    except HowdahError as error:
        streams.print_error(f"howdah: {line}" for line in error_lines(error))
        sys.exit(error.exit_code)
    except click.ClickException as error:
        with streams.stderr_may_be_full():
            show_usage_error(error, sys.argv[1:] if argv is None else argv)
        sys.exit(64)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except FileNotFoundError:
        if _has_directory():
            raise
        streams.print_error(["howdah: the current directory has been removed: go to one that is there"])
        sys.exit(StagingError.exit_code)
    except OSError as error:
        if error.errno not in _OF_NAMES or not error.filename:
            raise
        streams.print_error([f"howdah: {explain(error, os.fsdecode(error.filename))}"])
        sys.exit(StagingError.exit_code)


def _has_directory() -> bool:
    """Return whether the process's current directory exists."""
    try:
        return bool(os.getcwd())  # noqa: PTH109
    except FileNotFoundError:
        return False
