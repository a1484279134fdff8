"""`howdah notebook`: JupyterLab, code-server, or any program for a browser, on a machine of the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from howdah.cli.browser import opened, print_link
from howdah.cli.i18n import _, examples
from howdah.cli.job_arguments import CommandWithProgram, options_without_file, program_words
from howdah.cli.job_choice import choose_job
from howdah.cli.run import notice
from howdah.cli.terminal import json_option, print_result
from howdah.client.engine_registry import settings_for
from howdah.client.follow import fetch_update
from howdah.client.relay import RelayClient
from howdah.client.start_wait import require_running
from howdah.client.submit import PreparedJob
from howdah.errors import EngineUnavailable, RequestRefused
from howdah.interactive import hold
from howdah.interactive.commands import local_port_option, open_forward, port_option, wait_for_job
from howdah.interactive.held_job import (
    HOME,
    SERVES,
    add_requirement,
    duration,
    prepare_held_job,
    served_port,
    start,
    stored_home,
)
from howdah.spec import TaskId

TOKEN, PASSWORD = "JUPYTER_TOKEN", "PASSWORD"
"""Variables that JupyterLab and code-server read."""
SCRIPT = "limit_notice.js"
LISTEN_S, POLL_S = 180.0, 0.5
_LAB = (
    *("python3", "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port={port}"),
    *(f"--ServerApp.root_dir={HOME}", "--ServerApp.port_retries=0", f"--ServerApp.extra_static_paths={hold.STATIC}"),
    "--LabServerApp.extra_labextensions_path=howdah-labextensions",
)
_CODE = ("code-server", "--auth", "password", "--bind-addr", "127.0.0.1:{port}", "--disable-telemetry", HOME)


class NotebookCommand(CommandWithProgram):
    """A command that takes another program after `--`."""

    program_usage = "[-- COMMAND [ARGUMENT]…]"


@click.command(
    cls=NotebookCommand,
    epilog=examples(
        "howdah notebook --on yarn --gpus 1 --memory 16GiB --for 8h --open",
        "howdah notebook --ide code --home my-work",
    ),
)
@click.argument("job_id", default="")
@click.option("--for", "limit", default="8h", metavar="TIME", help="How long it is kept at most, such as 8h.")
@click.option("--idle", default="2h", metavar="TIME", help="How long it is kept while nobody uses it.")
@click.option("--ide", type=click.Choice(["lab", "code"]), default="lab", help="JupyterLab or code-server.")
@port_option("--port", "With a command after --: the port at which it listens.")
@click.option("--home", default="", metavar="PATH", help="Where to store its files: name or path; --name by default.")
@local_port_option
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
@click.option("--detach", is_flag=True, help="Start it, print its id, and return.")
@json_option
@options_without_file
def notebook(job_id: str, local_port: int, opens: bool, detach: bool, as_json: bool, **options: Any) -> None:
    """Start JupyterLab on a machine of the cluster and print a link to it, or print a link to JOB_ID again. The link
    works while this command runs. The files in the notebook's directory are stored, and are there again the next
    time."""
    if job_id:
        relay = RelayClient(*choose_job(job_id, options["profile"]))
        task = relay.task("")
    else:
        prepared = _prepare(**options)
        job_id, task = start(prepared)
        if detach:
            print_result(job_id, {"id": job_id}, as_json)
            return
        relay = RelayClient(prepared.engine, job_id)
    _show(relay, task, local_port, opens, as_json)


def _prepare(limit: str, idle: str, ide: str, port: int, home: str, **options: Any) -> PreparedJob:
    """Plan a job that runs the program that `ide` or the command line names.

    Raises:
        HowdahError, click.ClickException: the options are wrong, or the job cannot run.
    """
    seconds, idle_s = duration("--for", limit), duration("--idle", idle)
    words = program_words()
    if bool(words) != bool(port):
        raise click.UsageError(_("--port and a command after -- belong together: --port 8080 -- python app.py"))
    options["name"] = options["name"] or "notebook"
    if "/" not in home:
        home = stored_home(home or options["name"], options["engine"], options["profile"])
    variable, command, hold_options, files = "", tuple(words or ()), [], []
    if port:
        hold_options = [SERVES, str(port)]
    elif ide == "code":
        variable, command = PASSWORD, _CODE
    else:
        variable, command = TOKEN, (*_LAB, *_idle_options(idle_s))
        hold_options, files = ["--lab", SCRIPT], [f"{Path(hold.__file__).with_name(SCRIPT)}#{SCRIPT}"]
        _require_jupyterlab(options)
    with tempfile.NamedTemporaryFile("w", prefix="howdah-notebook-") as secret:
        secret.write(secrets.token_hex(24))
        secret.flush()
        given = {variable: f"file:{secret.name}"} if variable else {}
        return prepare_held_job(seconds, command, home, options, files=files, hold_options=hold_options, secrets=given)


def _idle_options(idle_s: float) -> list[str]:
    """Let JupyterLab end idle kernels and terminals, and end itself when nobody has used it for that time."""
    every = f"{min(60.0, idle_s / 2):.0f}"
    return [
        f"--MappingKernelManager.cull_idle_timeout={idle_s:.0f}",
        f"--MappingKernelManager.cull_interval={every}",
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={idle_s:.0f}",
        f"--TerminalManager.cull_interval={every}",
        f"--ServerApp.shutdown_no_activity_timeout={idle_s:.0f}",
    ]


def _require_jupyterlab(options: dict[str, Any]) -> None:
    """Give the job an environment with JupyterLab, unless its environment is one that exists."""
    if any(each.startswith("environment.") for each in options["sets"]):
        return
    flags = {"engine": options["engine"], "profile": options["profile"]}
    if not options["requirements"] and settings_for(flags)["environment"]:
        return
    options["requirements"] = add_requirement(options["requirements"], "jupyterlab", notice)


def _show(relay: RelayClient, task: TaskId, local_port: int, opens: bool, as_json: bool) -> None:
    """Print the link, and forward until the job has ended or Ctrl-C."""
    port = _wait_until_listening(relay, task)
    with open_forward(relay, task, port, local_port) as here, contextlib.ExitStack() as until_end:
        link = _link(relay, task, here)
        print_link(link, as_json)
        if opens:
            until_end.enter_context(opened(link))
        notice(_("the link leads through this command: Ctrl-C ends it, and the notebook goes on"))
        if not wait_for_job(relay):
            notice(_("`howdah notebook {id}` prints a link again, `howdah cancel {id}` ends it", id=relay.job_id))


def _link(relay: RelayClient, task: TaskId, port: int) -> str:
    """Return the local address, with the program's token if it has one. If the program has a password, print it."""
    for variable in (TOKEN, PASSWORD):
        ended, value = relay.run(task, ("printenv", variable))
        if ended.code == 0 and variable == TOKEN:
            return f"http://127.0.0.1:{port}/lab?token={value}"
        if ended.code == 0:
            notice(_("password: {password}", password=value))
    return f"http://127.0.0.1:{port}/"


def _wait_until_listening(relay: RelayClient, task: TaskId) -> str:
    """Return the port of the program once it takes connections.

    Raises:
        JobFailed: the job has ended.
        EngineUnavailable: it has not done so after LISTEN_S seconds.
        SpecError: the job is no notebook.
    """
    port, until, problem = served_port(relay), time.monotonic() + LISTEN_S, ""
    while time.monotonic() < until:
        require_running(relay.job_id, fetch_update(relay.engine, relay.job_id))
        try:
            connection, _early = asyncio.run(relay.open(task, port=port))
            connection.close()
            return port
        except (RequestRefused, EngineUnavailable) as error:
            problem = str(error)
        time.sleep(POLL_S)
    lines = f"`howdah logs {relay.job_id}` shows what it printed"
    raise EngineUnavailable(f"nothing listens in {task} after {LISTEN_S:.0f} s: {problem}; {lines}")
