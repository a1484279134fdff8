"""`howdah exec`, `cp` and `forward`: a command in a running task, its files, and its ports."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.interrupts import finish_unless_interrupted
from howdah.cli.job_arguments import CommandWithProgram, program_words
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.run import notice
from howdah.cli.terminal import json_option, print_result
from howdah.client.job_end import watch_until_end
from howdah.client.port_forward import PortForward
from howdah.client.relay import RelayClient
from howdah.client.remote_command import RemoteCommand, exit_status, with_terminal_size
from howdah.errors import SpecError, StagingError
from howdah.interactive.task_files import copy_from_task, copy_to_task, split_place
from howdah.spec import TaskId
from howdah.spec.message import message
from howdah.storage.linked_tree import describe_left_out
from howdah.wire.relay_messages import CommandRequest

_NOT_COPIED = message("it is no file and no directory that can be read")
SAY_AGAIN_S = 5.0
"""Seconds within which the same problem of a forwarded connection is reported only once."""


class CommandInTask(CommandWithProgram):
    """A command that runs what follows `--` in a task."""

    program_usage = "-- COMMAND [ARGUMENT]…"


@click.command(name="exec", cls=CommandInTask, epilog=examples("howdah exec resnet worker:1 -- nvidia-smi"))
@job_argument()
@click.argument("task", default="")
@click.option("-t", "--terminal", is_flag=True, help="Give COMMAND a terminal, for programs that people type in.")
@click.option("--profile", default="", help="A profile of your configuration.")
def run_in_task(job_id: str | None, task: str, terminal: bool, profile: str) -> None:
    """Run COMMAND in TASK (worker:1) of the running JOB_ID, beside its program and with its environment; exits with
    COMMAND's status. Standard input, output and error are COMMAND's."""
    words = program_words()
    if not words:
        raise click.UsageError(_("after -- comes the command, such as: -- nvidia-smi"))
    relay = RelayClient(*choose_job(job_id, profile, acts=True))
    request = CommandRequest(argv=words)
    if terminal:
        require_terminal()
        request = with_terminal_size(request)
    ended = RemoteCommand(relay, relay.task(task), request, say=say_in_terminal).run()
    raise SystemExit(exit_status(ended))


def require_terminal() -> None:
    """Raise SpecError if the standard input or output is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError.at("--terminal", "needs a terminal here; `howdah exec` without it needs none")


def say_in_terminal(text: str) -> None:
    """Print a line for people while the terminal passes on each key."""
    sys.stderr.write(f"\r\n[howdah: {text}]\r\n")
    sys.stderr.flush()


@click.command(epilog=examples("howdah cp resnet:worker:0:model ./model", "howdah cp ./fix.py @last:worker:0:fix.py"))
@click.argument("source")
@click.argument("destination")
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def cp(source: str, destination: str, profile: str, as_json: bool) -> None:
    """Copy a file or a directory from a running task to this machine, or the other way round. In a task it is
    JOB_ID:TASK:PATH (ID:worker:1:model); the path begins in the working directory of the task's program."""
    there, here = split_place(source), split_place(destination)
    if (there is None) == (here is None):
        raise click.UsageError(_("one of the two is in a task (JOB_ID:worker:0:PATH), the other on this machine"))
    place = there or here
    assert place is not None
    relay = RelayClient(*choose_job(place.job_id, profile, acts=there is None))
    task = relay.task(place.task)
    if there is not None:
        copied = str(copy_from_task(relay, task, place.path, Path(destination), _say_left_out))
    else:
        copied = str(copy_to_task(relay, task, Path(source), place.path, _say_left_out))
    print_result(copied, {"path": copied}, as_json)


def _say_left_out(name: str) -> None:
    click.echo(f"howdah: {translate_stored(describe_left_out(name, _NOT_COPIED))}", err=True)


def port_option(name: str, help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command an option for a port; 0 stands for no port."""
    return click.option(name, default=0, type=click.IntRange(0, 65535), metavar="N", help=help_text)


local_port_option = port_option("--local-port", "The port on this machine; a free one without this.")


@click.command(
    epilog=examples("howdah forward resnet worker:0 6006", "howdah forward @last head:0 dashboard --local-port 8265")
)
@job_argument(required=True)
@click.argument("task")
@click.argument("port")
@local_port_option
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def forward(job_id: str, task: str, port: str, local_port: int, profile: str, as_json: bool) -> None:
    """Forward a port of this machine to PORT, a number or a name of the job file, of TASK (worker:0) of the running
    JOB_ID, until Ctrl-C or the end of the job."""
    relay = RelayClient(*choose_job(job_id, profile))
    chosen = relay.task(task)
    asyncio.run(_try_port(relay, chosen, port))
    with open_forward(relay, chosen, port, local_port) as forwarding:
        here = f"127.0.0.1:{forwarding}"
        text = _("{here} leads to port {port} of {task}: Ctrl-C ends it", here=here, port=port, task=chosen)
        print_result(text, {"address": here, "task": str(chosen), "port": port}, as_json)
        wait_for_job(relay)


async def _try_port(relay: RelayClient, task: TaskId, port: str) -> None:
    """Open a stream once, so that a wrong name is reported at once. A program that does not listen yet may listen
    later."""
    connection, _early = await relay.open(task, port=port)
    connection.close()


@contextlib.contextmanager
def open_forward(relay: RelayClient, task: TaskId, port: str, local_port: int = 0) -> Iterator[int]:
    """Forward a port of this machine inside the context, and yield its number.

    Raises:
        StagingError: the port is taken.
    """
    try:
        connect = functools.partial(relay.connect_port, task, port)
        forwarding = PortForward(connect, local_port, _OnceInAWhile(notice))
    except OSError as error:
        raise StagingError(f"--local-port {local_port}: {error.strerror or error}") from error
    try:
        yield forwarding.port
    finally:
        forwarding.close()


def wait_for_job(relay: RelayClient) -> bool:
    """Wait until the job has ended, or for Ctrl-C; return whether it has ended."""
    has_ended = finish_unless_interrupted(lambda: watch_until_end(relay.engine, relay.job_id))
    if has_ended:
        notice(_("{id} has ended", id=relay.job_id))
    return has_ended


class _OnceInAWhile:
    """Prints a line unless it was printed a moment ago."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._said = say, dict[str, float]()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            now, before = time.monotonic(), self._said.get(text, -SAY_AGAIN_S)
            self._said = {text: now}
        if now - before >= SAY_AGAIN_S:
            self._say(text)
