"""The doctor's checks of Slurm: configuration, controller, nodes, partitions, accounting, and the home of jobs."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator

from howdah.cli.findings import Finding, fail, guarded, ok, warn
from howdah.cli.i18n import _
from howdah.config.settings import Settings
from howdah.engines.slurm.commands import SlurmCommands, commands_of, find_conf
from howdah.engines.slurm.engine import SlurmEngine
from howdah.errors import HowdahError, SpecError
from howdah.spec import uris
from howdah.storage.factory import filesystem


def checks(settings: Settings) -> Iterator[Finding]:
    """Yield the checks; a check is left out if one on which it depends has failed."""
    missing = [name for name in ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo") if not shutil.which(name)]
    if missing:
        yield fail("Slurm", _("not installed here: {names}", names=", ".join(missing)), "apt-get install slurm-client")
        return
    conf = find_conf(settings.values)
    try:
        slurm = commands_of(settings.values)
    except SpecError as error:
        yield fail("slurm.conf", str(error), "")
        return
    yield ok("slurm.conf", conf) if conf else warn("slurm.conf", _("no file: Slurm must find its own"), "")
    try:
        up, rows = slurm.nodes_up(), slurm.call("sinfo", "--noheader", "--format=%P|%a|%l").splitlines()
    except HowdahError as error:
        yield fail("slurmctld", str(error), _("check that it runs, and SlurmctldHost in {file}", file=conf))
        return
    yield ok("slurmctld", slurm.call("scontrol", "ping").splitlines()[0].strip())
    if up:
        yield ok(_("nodes"), _("{count} are up", count=len(up)))
    else:
        yield fail(_("nodes"), _("none takes containers now"), _("ask the cluster's administrators"))
    yield from _partitions([row.split("|") for row in rows], settings["queue"])
    yield from _accounting(slurm)
    yield from guarded(_("staging"), lambda: _home(settings))


def _partitions(rows: list[list[str]], wanted: str) -> Iterator[Finding]:
    names = [row[0].rstrip("*") for row in rows if row[1] == "up"]
    if wanted and wanted not in names:
        text = _("{queue}, your setting, is not one that is up", queue=wanted)
        yield fail(_("queues"), text, _("yours are: {queues}", queues=", ".join(names)))
    else:
        yield ok(_("queues"), ", ".join(f"{row[0]} ({row[2]})" for row in rows if row[1] == "up"))


def _accounting(slurm: SlurmCommands) -> Iterator[Finding]:
    try:
        slurm.call("sacct", "--noheader", "--allocations", "--starttime=now")
    except HowdahError as error:
        text = _("Slurm keeps no accounts, and forgets jobs minutes after their end: {reason}", reason=error)
        yield warn("sacct", text, "")
    else:
        yield ok("sacct", _("answers"))


def _home(settings: Settings) -> Iterator[Finding]:
    """Check that this user can write to the directory of jobs, and that the nodes see it."""
    engine = SlurmEngine(settings.values)
    files, uri = filesystem(engine.home), uris.join(engine.home, f".doctor-{uuid.uuid4().hex[:8]}")
    files.mkdirs(engine.home, 0o700)
    files.write_bytes(uri, b"howdah doctor\n", 0o600)
    try:
        options = ["--nodes=1", "--ntasks=1", "--immediate=10", "--quiet", "--input=none"]
        said = commands_of(settings.values).call("srun", *options, "cat", uris.path(uri))
        if said == "howdah doctor\n":
            yield ok(_("staging"), _("{uri} can be written, and a node reads it", uri=engine.home))
        else:
            advice = _("set staging_dir to a directory that all nodes share")
            yield fail(
                _("staging"), _("{uri}: a file read back differs from what was written", uri=engine.home), advice
            )
    except HowdahError as error:
        advice = _("set staging_dir to a directory that all nodes share")
        yield warn(_("staging"), _("{uri}: no node could be asked: {reason}", uri=engine.home, reason=error), advice)
    finally:
        files.delete(uri)
