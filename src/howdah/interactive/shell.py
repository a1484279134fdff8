"""`howdah shell`: a machine for a while, or a shell in a running task. `howdah extend`: more time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import click

from howdah.cli.i18n import _, examples
from howdah.cli.job_arguments import options_without_file
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.run import notice
from howdah.cli.terminal import json_option, print_result
from howdah.client.relay import RelayClient
from howdah.client.remote_command import RemoteCommand, exit_status, with_terminal_size
from howdah.errors import HowdahError, JobEnded, JobNotFound, NoLongerThere
from howdah.interactive import hold
from howdah.interactive.commands import require_terminal, say_in_terminal
from howdah.interactive.held_job import cancel, duration, extend_time, prepare_held_job, start, stored_home
from howdah.spec import TaskId
from howdah.wire.relay_messages import AttachRequest, CommandRequest

LOOK_S = 30.0
"""Seconds between two checks of the clock, and between two requests to a job that did not answer."""


@click.command(
    epilog=examples(
        "howdah shell --on yarn --gpus 1 --memory 16GiB --for 4h",
        "howdah shell resnet worker:1",
    )
)
@click.argument("job_id", default="")
@click.argument("task", default="")
@click.option("--for", "limit", default="4h", metavar="TIME", help="How long the machine is kept at most, such as 4h.")
@click.option("--new", is_flag=True, help="Another shell, even if one in the task has lost its client.")
@click.option("--keep", is_flag=True, help="Keep the machine when the shell ends.")
@click.option("--home", default="", metavar="PATH", help="Where the directory `home` is stored, a name or a path.")
@options_without_file
def shell(job_id: str, task: str, limit: str, new: bool, keep: bool, home: str, **options: Any) -> None:
    """Open a shell on a machine of the cluster, kept for a while, or in TASK (worker:1) of the running JOB_ID, with its
    program's environment. A lost connection is opened again; `~.` at the beginning of a line leaves the shell running,
    and `howdah shell JOB_ID` comes back to it."""
    require_terminal()
    if job_id:
        relay = RelayClient(*choose_job(job_id, options["profile"], acts=True))
        chosen = relay.task(task)
        status = _run_shell(relay, chosen, new)
        if status is None:
            notice(_("the shell goes on; `howdah shell {id} {task}` comes back to it", id=job_id, task=chosen))
        raise SystemExit(status or 0)
    seconds = duration("--for", limit)
    options["name"] = options["name"] or "shell"
    if home and "/" not in home:
        home = stored_home(home, options["engine"], options["profile"])
    prepared = prepare_held_job(seconds, (), home, options)
    job_id, first = start(prepared)
    notice(_("{id} keeps the machine until the shell ends, {limit} at most", id=job_id, limit=limit))
    raise SystemExit(_run_held_shell(RelayClient(prepared.engine, job_id), first, seconds, keep))


def _run_held_shell(relay: RelayClient, task: TaskId, seconds: float, keep: bool) -> int:
    """Run a shell in a job of its own, which ends only with the shell; return the shell's status."""
    warning = threading.Thread(target=_warn_of_limit, args=(relay, task, seconds), daemon=True)
    warning.start()
    status = _run_shell(relay, task, new=True)
    if status is None:
        text = _("{id} goes on; `howdah shell {id}` comes back, `howdah cancel {id}` ends it", id=relay.job_id)
        notice(text)
    elif not keep:
        cancel(relay.engine, relay.job_id)
    return status or 0


def _warn_of_limit(relay: RelayClient, task: TaskId, seconds: float) -> None:
    """Say in the terminal when the time of a job is nearly over, until this process ends."""

    def say(minutes: float) -> None:
        command = f"howdah extend {relay.job_id} --for 1h"
        text = (
            f"{minutes:.0f} minutes are left; `{command}` in another terminal keeps the machine for an hour from then"
        )
        say_in_terminal(text)

    tell_when_nearly_over(lambda: float(relay.run(task, ("cat", str(hold.UNTIL)))[1]), seconds, say)


def tell_when_nearly_over(
    read_until: Callable[[], float],
    seconds: float,
    tell: Callable[[float], None],
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Call `tell` with the minutes that are left when hold.WARN_S of a job's `seconds` are left, again after each
    extension, until the job has ended. `read_until` returns when the job's time is over, in seconds since 1970; if it
    raises an error while the job goes on, it is called again."""
    told, ask_at = 0.0, clock() + seconds - hold.WARN_S
    while True:
        while (wait := ask_at - clock()) > 0:
            sleep(min(wait, LOOK_S))  # a longer one would not count the time for which this machine was asleep
        try:
            until = read_until()
        except (JobEnded, JobNotFound):
            return
        except (HowdahError, ValueError):  # the connection is lost for now
            ask_at = clock() + LOOK_S
            continue
        left = until - clock()
        if left <= hold.WARN_S + 1 and until != told:
            told = until
            tell(max(0.0, left) / 60)
        ask_at = clock() + max(left - hold.WARN_S, hold.WARN_S / 2 if told else 0.0)


def _run_shell(relay: RelayClient, task: TaskId, new: bool) -> int | None:
    """Run a shell to its end; return its status, None if the user has left it running. Without `new`, come back to the
    shell that has lost its client."""
    request = with_terminal_size(CommandRequest())
    running = RemoteCommand(relay, task, request, None if new else AttachRequest(), say_in_terminal)
    try:
        ended = running.run()
    except NoLongerThere:
        if new:
            raise
        running = RemoteCommand(relay, task, request, say=say_in_terminal)
        ended = running.run()
    return None if running.left else exit_status(ended)


@click.command(epilog=examples("howdah extend @last --for 2h"))
@job_argument()
@click.option("--for", "limit", default="1h", metavar="TIME", help="How long from now on, such as 2h.")
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def extend(job_id: str | None, limit: str, profile: str, as_json: bool) -> None:
    """Let the notebook or shell JOB_ID go on for a while from now, if it would end sooner."""
    seconds = duration("--for", limit)
    relay = RelayClient(*choose_job(job_id, profile, acts=True))
    until = extend_time(relay, relay.task(""), seconds)
    text = _("{id} goes on until {time}", id=relay.job_id, time=until)
    print_result(text, {"id": relay.job_id, "until": until}, as_json)
