"""`howdah bundle`: one file with what a helpdesk asks for, without secrets."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import zipfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from howdah.api.cli_status import describe
from howdah.api.serializers import masked_record
from howdah.cli.config import shown
from howdah.cli.explain import as_object, lines
from howdah.cli.i18n import _, examples
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.logs import LogSelection, output_of
from howdah.cli.run import notice
from howdah.cli.terminal import report_json
from howdah.client.engine_registry import settings_for
from howdah.client.explain import explain
from howdah.client.follow import fetch_update
from howdah.client.job_end import report_of
from howdah.client.recorded_events import recorded_events
from howdah.engines import Engine
from howdah.errors import HowdahError, NotFound, StagingError
from howdah.logs.lines import LineFilter
from howdah.logs.stream_index import STREAMS
from howdah.spec import redaction
from howdah.spec.codec import encode, to_json
from howdah.storage.factory import filesystem

END_BYTES = 256 << 10
"""How many bytes of the end of each log are kept."""
_TOP = """What `howdah bundle` has gathered of the job {id}, for whoever helps its user.

status.json    the job and its tasks, with its job file
explain.txt    why it waits or failed, what the engine and its accounting say
explain.json   the same for programs
events.jsonl   everything that its master has written down
logs/          the ends of the logs, {kib} KiB of each stream of each attempt
stacks.txt     the stacks of its programs that were kept last
settings.json  the settings where this was gathered, each with its source
versions.json  of howdah, Python, the system and the libraries

What looks like a secret is masked: values of variables and options that are named like one. Look through the logs
before you pass this on: a program may have printed anything.
"""


@click.command(epilog=examples("howdah bundle", "howdah bundle resnet --to /tmp/resnet.zip"))
@job_argument()
@click.option("--to", "to", default="", metavar="FILE", help="Where to write it, instead of howdah-JOB_ID.zip here.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def bundle(job_id: str, to: str, profile: str, as_json: bool) -> None:
    """Write one file about a job for whoever helps you: events, ends of logs, why it failed, versions; no secrets."""
    engine, job_id = choose_job(job_id, profile)
    report_of(engine, job_id)  # raises an error before anything is written
    path = Path(to or f"howdah-{job_id}.zip")
    missing = {}
    try:
        with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            path.chmod(0o600)
            archive.writestr("README.txt", _TOP.format(id=job_id, kib=END_BYTES >> 10))
            for name, texts in _parts(engine, job_id, profile).items():
                try:
                    for each, text in texts():
                        archive.writestr(each, text)
                except HowdahError as error:
                    missing[name] = str(error)
            if missing:
                archive.writestr("missing.txt", "".join(f"{name}: {why}\n" for name, why in missing.items()))
    except FileExistsError:
        raise StagingError(f"{path} exists: choose another file with --to") from None
    for name, why in missing.items():
        notice(_("not in the bundle: {name}: {reason}", name=name, reason=why))
    click.echo(to_json({"path": str(path), "missing": missing}) if as_json else str(path))


_Texts = Callable[[], Iterator[tuple[str, str]]]


def _parts(engine: Engine, job_id: str, profile: str) -> Mapping[str, _Texts]:
    """Return the parts by name; each yields its files, and raises a HowdahError where there is nothing to be had."""

    def status() -> Iterator[tuple[str, str]]:
        update = fetch_update(engine, job_id)
        yield "status.json", to_json(redaction.record({**report_json(update.report), **describe(update.view)}))

    def why() -> Iterator[tuple[str, str]]:
        found = explain(engine, job_id)
        yield "explain.txt", redaction.lines("".join(f"{click.unstyle(line)}\n" for line in lines(found)))
        yield "explain.json", to_json(redaction.record(as_object(found)))

    def events() -> Iterator[tuple[str, str]]:
        told = recorded_events(report_of(engine, job_id))
        records = (masked_record({"kind": type(event).__name__, **encode(event)}) for event in told)
        yield "events.jsonl", "".join(f"{to_json(redaction.record(record))}\n" for record in records)

    def logs() -> Iterator[tuple[str, str]]:
        for heading, end in _ends_of_logs(engine, job_id).items():
            name = heading.replace(" ", ".").replace("/", "_").replace(":", "-")
            yield f"logs/{name}.txt", redaction.lines(end.decode("utf-8", "replace"))

    def stacks() -> Iterator[tuple[str, str]]:
        view, report = fetch_update(engine, job_id).view, report_of(engine, job_id)
        if not view.stacks:
            raise NotFound(f"none were kept: `howdah stacks {job_id}` takes them while its programs run")
        read = filesystem(view.stacks[-1], report.conf_dir).read_bytes(view.stacks[-1])
        yield "stacks.txt", redaction.lines(read.decode("utf-8", "replace"))

    def surroundings() -> Iterator[tuple[str, str]]:
        settings = settings_for({"profile": profile, "engine": engine.name})
        sources = settings.sources
        values = {key: {"value": shown(key, value), "source": sources[key]} for key, value in settings.values.items()}
        yield "settings.json", to_json(redaction.record(values))
        yield "versions.json", to_json(_versions())

    found = {"status": status, "why": why, "events": events, "logs": logs, "stacks": stacks}
    return {**found, "settings and versions": surroundings}


def _ends_of_logs(engine: Engine, job_id: str) -> Mapping[str, bytes]:
    """Return the last END_BYTES of each log, by its heading."""
    selection = LogSelection((), STREAMS, 0, LineFilter(), merge=False, follow=False, whole=True)
    pieces: dict[str, deque[bytes]] = defaultdict(deque)
    for heading, data in output_of(engine, job_id, selection):
        kept = pieces[heading]
        kept.append(data)
        while sum(map(len, kept)) - len(kept[0]) >= END_BYTES:
            kept.popleft()
    return {heading: b"".join(kept)[-END_BYTES:] for heading, kept in pieces.items()}


def _versions() -> Mapping[str, str]:
    libraries = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    return {"python": sys.version, "system": platform.platform(), **dict(sorted(libraries.items()))}
