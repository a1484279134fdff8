"""Jobs that keep a machine for a while (`howdah.interactive.hold`): how they are made, started, and given more time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.interrupts import Interrupts, SignalReceived
from howdah.cli.job_arguments import OWN_WORDS, WORDS, program_words
from howdah.cli.run import notice, prepared_job, upload_and_submit
from howdah.client import engine_registry
from howdah.client.command_job import ROLE
from howdah.client.follow import fetch_update
from howdah.client.job_end import cancel_job, report_of
from howdah.client.relay import RelayClient
from howdah.client.start_wait import wait_until_running
from howdah.client.submit import PreparedJob
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, SpecError
from howdah.interactive import hold
from howdah.spec import JobSpec, TaskId, units
from howdah.spec.job import Checkpoint
from howdah.staging.project_files import file_to_install
from howdah.staging.virtual_environments import read_requirements
from howdah.storage.content_cache import local_directory
from howdah.storage.hdfs.call_timeout import start_call

PROGRAM, SERVES, HTTP = "hold.py", "--serves", "http"
"""The program of a held job, its option for the port of another program, and the name of the port if that option is
missing."""
HOME, HOMES, STORE_EVERY_S = "home", "howdah-homes", 15.0
"""The directory of the program that is stored; the directory below the user's in which it is stored; and seconds
between two copies."""
MIN_S, MAX_S = 60.0, 30 * 86400.0


def duration(option: str, text: str) -> float:
    """Return the seconds of a duration on the command line.

    Raises:
        SpecError: the text is not a duration, or the duration is too short or too long.
    """
    try:
        found = units.seconds(text)
    except ValueError as error:
        raise SpecError.at(option, f"is {text!r}, {error}") from None
    if not MIN_S <= found <= MAX_S:
        raise SpecError.at(option, f"is {text!r}, must be from 1min to 30d")
    return found


def prepare_held_job(
    seconds: float,
    command: Sequence[str],
    home: str,
    options: dict[str, Any],
    *,
    files: Sequence[str] = (),
    hold_options: Sequence[str] = (),
    secrets: dict[str, str] | None = None,
) -> PreparedJob:
    """Plan a job of one task that runs `command` ((): nothing) for at most `seconds`. Its directory `home` is stored at
    the path or URI `home`, and is fetched from there at the start; "" stores nothing.

    `options` are those of the command line; `files` and `secrets` are in the form of a job file.

    Raises:
        HowdahError, click.ClickException: the options are wrong, or the job cannot run.
    """
    words = ["python3", PROGRAM, *hold_options, "--for", f"{seconds:.0f}", *(("--", *command) if command else ())]
    meta = click.get_current_context().meta
    meta[OWN_WORDS], meta[WORDS] = program_words() or (), tuple(words)  # a directory `home` or `lab` here is not meant
    options["files"] = (*options["files"], f"{hold.__file__}#{PROGRAM}", *files)

    def change(job: JobSpec) -> JobSpec:
        stop = ("--stop", f"{job.timeouts.stop_s:g}")  # which --set may have changed
        held = (*words[:2], *stop, *words[2:])
        role = dataclasses.replace(job.roles[ROLE], command=held, ports=(HTTP,), replicas=1)
        kept = Checkpoint(path=home, local=HOME, every_s=STORE_EVERY_S, valid="all") if home else job.checkpoint
        return dataclasses.replace(job, roles={ROLE: role}, checkpoint=kept, secrets={**job.secrets, **(secrets or {})})

    return prepared_job(job_files=(), overwrite=False, change=change, **options)


def stored_home(name: str, engine: str, profile: str) -> str:
    """Return where the home of this name is stored: below the user's directory on the cluster's file system, or on this
    machine if jobs run here.

    Raises:
        SpecError: it is no name, but the directory of all homes, or the one that holds it.
    """
    if name in (".", ".."):
        raise SpecError.at("--home", f"is {name!r}, must be a name, or a path with a slash, such as ./work")
    chosen = engine_registry.engine(engine_registry.settings_for({"engine": engine, "profile": profile}))
    return str(Path.home() / HOMES / name) if chosen.one_machine else f"{HOMES}/{name}"


def start(prepared: PreparedJob) -> tuple[str, TaskId]:
    """Submit the job and wait until its program runs; return its id and its task. Ctrl-C cancels the job.

    Raises:
        HowdahError: the job cannot be submitted, fails, or does not start in time. Then it is cancelled.
    """
    engine = prepared.engine
    with Interrupts() as interrupts:
        job_id = interrupts.call(lambda: upload_and_submit(prepared, False, interrupts.check))
        notice(_("submitted {id} to {engine}", id=job_id, engine=engine.name))
        try:
            return job_id, interrupts.wait(start_call(lambda: wait_until_running(engine, job_id, notice))).id
        except (SignalReceived, HowdahError) as error:
            interrupts.call(lambda: cancel(engine, job_id))
            if isinstance(error, SignalReceived):
                raise KeyboardInterrupt from None
            raise


def cancel(engine: Engine, job_id: str) -> None:
    """Cancel the job if it still runs."""
    with contextlib.suppress(HowdahError):
        report = report_of(engine, job_id)
        if not report.state.ended:
            cancel_job(engine, report, lambda text: notice(translate_stored(text)))


def held_words(relay: RelayClient) -> tuple[str, ...]:
    """Return the command of a held job.

    Raises:
        SpecError: it is no such job.
    """
    job = fetch_update(relay.engine, relay.job_id).view.job
    for role in job.roles.values() if job else ():
        if isinstance(role.command, tuple) and PROGRAM in role.command:
            return role.command
    raise SpecError.at("JOB_ID", f"{relay.job_id} is no notebook and no shell, which have a limit that can be extended")


def served_port(relay: RelayClient) -> str:
    """Return the number or the name of the port at which the program of a held job listens.

    Raises:
        SpecError: it is no such job.
    """
    words = held_words(relay)
    return words[words.index(SERVES) + 1] if SERVES in words else HTTP


def extend_time(relay: RelayClient, task: TaskId, seconds: float) -> str:
    """Let a held job go on for `seconds` from now, if it would end sooner; return its new end as a text.

    Raises:
        EngineUnavailable, RequestRefused: its task is not there.
        SpecError: it is no such job.
    """
    held_words(relay)
    ended, printed = relay.run(task, ("python3", PROGRAM, "--extend", f"{seconds:.0f}"))
    if ended.code != 0:
        raise EngineUnavailable(f"{relay.job_id}: the limit could not be written: {printed}")
    return printed


def add_requirement(requirements: str, wanted: str, say: Callable[[str], None]) -> str:
    """Return the path of a requirements file that contains `wanted`: `requirements` itself, or a file beside it with
    one more line, which stays because the job names it. Without `requirements` the file contains nothing else.

    Raises:
        SpecError: `requirements` cannot be read or completed, or has hashes, so that no line can be added.
    """
    if not requirements:
        path = local_directory() / f"only-{wanted}.txt"
        content = f"{wanted}\n"
    else:
        given = file_to_install(Path(requirements))
        try:
            text = given.read_bytes()
        except OSError as error:
            raise SpecError.at("--requirements", f"{requirements}: {error.strerror}") from None
        names = (re.split(r"[\s\[<>=!~;@]", line, maxsplit=1)[0] for line in read_requirements(text))
        if given.suffix == ".toml":
            if re.search(rf"""["']{wanted}\b""".encode(), text):
                return requirements
            raise SpecError.at("--requirements", f"{requirements} has no {wanted}: add it there")
        if wanted in (name.lower().replace("_", "-") for name in names):
            return requirements
        if b"--hash=" in text:
            raise SpecError.at("--requirements", f"{requirements} has hashes and no {wanted}: add it there")
        say(_("{wanted} is added to {file}", wanted=wanted, file=requirements))
        path = given.with_name(f".{given.name}.with-{wanted}")
        content = f"{text.decode('utf-8', 'replace').rstrip()}\n{wanted}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(content, "utf-8")
        new.replace(path)
    except OSError as error:
        raise SpecError.at("--requirements", f"{path}: {error.strerror}; add {wanted} to the file") from None
    return str(path)
