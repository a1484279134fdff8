"""`howdah bundle`: one file with the information that a helpdesk asks for. Texts that look like secrets are masked."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import zipfile
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click

from howdah.api.cli_status import describe
from howdah.api.serializers import masked_record
from howdah.cli.config import shown
from howdah.cli.explain import as_object, lines
from howdah.cli.i18n import _, examples
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.logs import LogSelection, output_of
from howdah.cli.mistakes import error_lines
from howdah.cli.run import notice
from howdah.cli.terminal import print_result, report_json
from howdah.client.engine_registry import settings_for
from howdah.client.explain import explain
from howdah.client.follow import fetch_update
from howdah.client.job_end import report_of
from howdah.client.recorded_events import recorded_events
from howdah.client.recorded_files import read_kept_stacks, read_submitted_job
from howdah.client.submit import read_secrets
from howdah.engines import Engine
from howdah.errors import HowdahError, NotFound, SpecError, StagingError
from howdah.logs.lines import LineFilter
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, redaction
from howdah.spec.codec import encode, to_json

END_BYTES = 256 << 10
"""The most bytes that are kept of the end of each log."""
_TOP = """What `howdah bundle` has gathered of the job {id}, for whoever helps its user.

status.json    the job and its tasks, with its job file
plan.json      the job as it was submitted: its files, its settings and where each came from
explain.txt    why it waits or failed, what the engine and its accounting say
explain.json   the same for programs
events.jsonl   everything that its master has written down
logs/          the ends of the logs, {kib} KiB of each stream of each attempt
stacks.txt     the stacks of its programs that were kept last
settings.json  the settings where this was gathered, each with its source
versions.json  of howdah, Python, the system and the libraries
missing.txt    what of this could not be had, and why

What looks like a secret is masked: values of variables and options that are named like one, and the job's own secrets
whose values are known where this was gathered. Look through the logs before you pass this on: a program may have
printed anything.
"""


@click.command(epilog=examples("howdah bundle", "howdah bundle resnet --to /tmp/resnet.zip"))
@job_argument()
@click.option("--to", "to", default="", metavar="FILE", help="Where to write it, instead of howdah-JOB_ID.zip here.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def bundle(job_id: str | None, to: str, profile: str, as_json: bool) -> None:
    """Write one file about a job for people who help you: its events, plan and versions, the ends of its logs, and why
    it failed. Values that look like secrets are masked; look through the logs before you pass the file on."""
    engine, job_id = choose_job(job_id, profile)
    gathering = _Gathering(engine, report_of(engine, job_id), profile)
    path = Path(to or f"howdah-{job_id}.zip")
    if os.path.lexists(path):  # reported before anything is gathered
        raise StagingError(f"{path} exists: choose another file with --to")
    notice(_("gathering what is known of {id}", id=job_id))
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as file:  # only this user reads it
            gathering.write(file)
            os.link(file.name, path)
    except FileExistsError:
        raise StagingError(f"{path} exists: choose another file with --to") from None
    except OSError as error:
        raise StagingError(f"{path}: {error.strerror or error}") from error
    for name, why in gathering.missing.items():
        notice(_("not in the bundle: {name}: {reason}", name=name, reason=why))
    print_result(str(path), {"path": str(path), "missing": gathering.missing}, as_json)


class _Gathering:
    """Gathers the known facts about a job."""

    def __init__(self, engine: Engine, report: JobReport, profile: str) -> None:
        self._engine, self._report, self._profile = engine, report, profile
        self._secrets: list[str] = []
        self.missing: dict[str, str] = {}
        """The reasons for which some parts are missing, by name."""

    def write(self, file: IO[bytes]) -> None:
        """Write the archive. Parts that cannot be read are left out, and the archive names them."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", _TOP.format(id=self._report.id, kib=END_BYTES >> 10))
            parts = {
                "secrets": self._know_secrets(),
                "status": self._status(),
                "plan": self._plan(),
                "explain": self._explanation(),
                "events": self._events(),
                "logs": self._logs(),
                "stacks": self._stacks(),
                "settings and versions": self._surroundings(),
            }
            for name, texts in parts.items():
                try:
                    for each, text in texts:
                        archive.writestr(each, text.encode("utf-8", "backslashreplace"))  # a path may be no Unicode
                except HowdahError as error:
                    self._note_missing(name, error)
            if self.missing:
                missing = "".join(f"{name}: {why}\n" for name, why in self.missing.items())
                archive.writestr("missing.txt", missing.encode("utf-8", "backslashreplace"))
        file.flush()

    def _note_missing(self, name: str, error: HowdahError) -> None:
        self.missing[name] = " ".join(error_lines(error))

    def _note_unread(self, reason: str) -> None:
        known = self.missing.get("some logs")
        self.missing["some logs"] = f"{known}; {reason}" if known else reason

    def _masked(self, text: str) -> str:
        return redaction.lines(text, self._secrets)

    def _record(self, value: Any) -> str:
        return redaction.line(to_json(redaction.record(value)), self._secrets)

    def _know_secrets(self) -> Iterator[tuple[str, str]]:
        """Read the values of the job's secrets on the machine of its submission, to mask them; yield nothing."""
        job = fetch_update(self._engine, self._report.id).view.job
        for name, reference in (job.secrets if job is not None else {}).items():
            try:
                self._secrets += read_secrets({name: reference}).values()
            except SpecError:
                self.missing[f"the value of the secret {name}"] = (
                    "it is not known here, so it is not masked if a program has printed it"
                )
        yield from ()

    def _status(self) -> Iterator[tuple[str, str]]:
        update = fetch_update(self._engine, self._report.id)
        yield "status.json", self._record({**report_json(update.report), **describe(update.view)})

    def _plan(self) -> Iterator[tuple[str, str]]:
        try:
            plan = json.loads(read_submitted_job(self._report))
        except ValueError as error:
            raise StagingError(f"job.json is not as howdah writes it: {error}") from error
        yield "plan.json", self._record(plan)

    def _explanation(self) -> Iterator[tuple[str, str]]:
        found = explain(self._engine, self._report.id)
        yield "explain.txt", self._masked("".join(f"{click.unstyle(line)}\n" for line in lines(found)))
        yield "explain.json", self._record(as_object(found))

    def _events(self) -> Iterator[tuple[str, str]]:
        told = recorded_events(self._report)
        records = (masked_record({"kind": type(event).__name__, **encode(event)}) for event in told)
        yield "events.jsonl", "".join(f"{self._record(record)}\n" for record in records)

    def _logs(self) -> Iterator[tuple[str, str]]:
        try:
            yield from self._ends_of_logs(())
        except HowdahError as error:  # perhaps of a lost node: the other logs matter all the more
            self._note_missing("some logs", error)
            for task in fetch_update(self._engine, self._report.id).view.tasks:
                try:
                    yield from self._ends_of_logs((str(task),))
                except HowdahError as error:
                    self._note_missing(f"logs of {task}", error)

    def _ends_of_logs(self, tasks: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        selection = LogSelection(tasks, STREAMS, 0, LineFilter(), False, False, False, END_BYTES)
        pieces: dict[str, deque[bytes]] = defaultdict(deque)
        for heading, data in output_of(self._engine, self._report.id, selection, self._note_unread):
            kept = pieces[heading]
            kept.append(data)
            while sum(map(len, kept)) - len(kept[0]) > END_BYTES:
                kept.popleft()
        for heading, kept in pieces.items():
            name = heading.replace(" ", ".").replace("/", "_").replace(":", "-")
            yield f"logs/{name}.txt", self._masked(_last_lines(b"".join(kept)).decode("utf-8", "replace"))

    def _stacks(self) -> Iterator[tuple[str, str]]:
        view = fetch_update(self._engine, self._report.id).view
        if not view.stacks:
            raise NotFound(f"none were kept: `howdah stacks {self._report.id}` takes them while its programs run")
        read = read_kept_stacks(self._report, view.stacks[-1])
        yield "stacks.txt", self._masked(read.decode("utf-8", "replace"))

    def _surroundings(self) -> Iterator[tuple[str, str]]:
        settings = settings_for({"profile": self._profile, "engine": self._engine.name})
        sources = settings.sources
        values = {key: {"value": shown(key, value), "source": sources[key]} for key, value in settings.values.items()}
        yield "settings.json", self._record(values)
        yield "versions.json", to_json(_versions())


def _last_lines(text: bytes) -> bytes:
    """Return the last END_BYTES in whole lines: the missing beginning of a cut line may be what shows that the line
    holds a secret."""
    if len(text) <= END_BYTES:
        return text
    return text[-END_BYTES:].partition(b"\n")[2]


def _versions() -> Mapping[str, str]:
    found = {str(each.metadata["Name"]): str(each.version) for each in importlib.metadata.distributions()}
    return {"python": sys.version, "system": platform.platform(), **dict(sorted(found.items()))}
