"""The doctor's checks of a cluster: configuration, ResourceManager, nodes, queues, NameNode, staging, pages, clocks."""

from __future__ import annotations

import asyncio
import email.utils
import time
import urllib.request
import uuid
from collections.abc import Iterator

from howdah.cli.findings import Finding, fail, guarded, ok, warn
from howdah.cli.i18n import _
from howdah.cli.sandbox import ended_daemons
from howdah.config.extras import how_to_install
from howdah.config.settings import Settings
from howdah.engines.yarn import conf, records
from howdah.engines.yarn.engine import YarnEngine
from howdah.engines.yarn.pending_reasons import web_address
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.errors import EngineUnavailable, HowdahError
from howdah.spec import uris
from howdah.storage.factory import filesystem

MAX_ANSWER_S = 15.0
SKEW_S, LARGE_SKEW_S = 30.0, 240.0
"""Differences of clocks, in seconds, from which the doctor warns, and from which it fails: the signatures of howdah's
own messages, and Kerberos, allow for five minutes."""
_ALL_OUT = (3, 5, 6, 7, 8)


def checks(settings: Settings) -> Iterator[Finding]:
    """Yield the checks; a check is left out if one on which it depends has failed."""
    if ended := ended_daemons("yarn"):
        yield fail(_("sandbox"), ended, "howdah sandbox up")
    try:
        configuration = conf.load(settings["hadoop_conf_dir"])
    except HowdahError as error:
        yield fail("HADOOP_CONF_DIR", str(error), _("copy the cluster's core-site.xml and yarn-site.xml there"))
        return
    yield ok("HADOOP_CONF_DIR", configuration.directory)
    if configuration.secure:
        yield ticket()
    yield from guarded("ResourceManager", lambda: resourcemanager(configuration, settings))
    yield from guarded("NameNode", lambda: namenode(configuration))
    yield from guarded(_("staging"), lambda: staging(settings))
    yield from web(configuration)


def ticket() -> Finding:
    """Check the Kerberos login."""
    from howdah.hadoop.gss import ticket_holder

    holder = ticket_holder()
    if not holder:
        return fail("Kerberos", _("you have no ticket, and the cluster wants one"), "kinit")
    return ok("Kerberos", _("a ticket of {holder}", holder=holder))


def resourcemanager(configuration: conf.Configuration, settings: Settings) -> Iterator[Finding]:
    """Check that the ResourceManager answers, has nodes, and has queues for this user."""
    where = ", ".join(map(str, configuration.resourcemanagers()))
    try:
        nodes, out, queues = asyncio.run(asyncio.wait_for(_ask_resourcemanager(configuration), MAX_ANSWER_S))
    except (TimeoutError, asyncio.TimeoutError):
        advice = _("check for a firewall in between, and yarn.resourcemanager.address")
        yield fail(
            "ResourceManager", _("{where}: no answer within {seconds} s", where=where, seconds=MAX_ANSWER_S), advice
        )
        return
    except EngineUnavailable as error:
        advice = _(
            "check that it runs, and yarn.resourcemanager.address in {directory}",
            directory=configuration.directory,
        )
        yield fail("ResourceManager", str(error), advice)
        return
    yield ok("ResourceManager", where)
    yield from _nodes(nodes, out)
    if not queues:
        yield fail(_("queues"), _("you may not submit to any"), _("ask the cluster's administrators"))
    elif settings["queue"] and settings["queue"].rpartition(".")[2] not in queues:
        advice = _("yours are: {queues}", queues=", ".join(queues))
        yield fail(_("queues"), _("you may not submit to {queue}, your setting", queue=settings["queue"]), advice)
    else:
        yield ok(_("queues"), ", ".join(queues))


async def _ask_resourcemanager(
    configuration: conf.Configuration,
) -> tuple[list[pb.NodeReport], list[pb.NodeReport], list[str]]:
    async with ResourceManagerClient(configuration, limit_s=MAX_ANSWER_S / 2) as rm:
        return await rm.nodes(), await rm.nodes(_ALL_OUT), await rm.submittable_queues()


def _nodes(nodes: list[pb.NodeReport], out: list[pb.NodeReport]) -> Iterator[Finding]:
    if not nodes:
        yield fail(_("nodes"), _("none takes containers now"), _("ask the cluster's administrators"))
    else:
        gib = sum(node.capability.memory for node in nodes) >> 10
        gpus = sum(records.from_resource(node.capability).get(records.GPU, 0) for node in nodes)
        yield ok(_("nodes"), _("{count} with {memory} GiB in all", count=len(nodes), memory=gib))
        yield ok("GPU", _("{count} GPUs in all", count=gpus) if gpus else _("no node offers yarn.io/gpu"))
    if out:
        states = ", ".join(f"{node.node.host} {records.name(records.NODE_STATES, node.state)}" for node in out[:6])
        yield warn(_("nodes"), _("{count} take no containers: {nodes}", count=len(out), nodes=states), "")


def namenode(configuration: conf.Configuration) -> Iterator[Finding]:
    """Check that the default file system answers."""
    root = configuration.text("fs.defaultFS")
    began = time.monotonic()
    filesystem(root, configuration.directory).stat(uris.join(root, "/"))
    yield ok("NameNode", _("{uri} answers in {ms} ms", uri=root, ms=round((time.monotonic() - began) * 1000)))
    if reason := filesystem(root, configuration.directory).why_not_flushed():
        text = _("curves and files are seen only when their writer has closed them: {reason}", reason=reason)
        yield warn(_("files being written"), text, how_to_install("yarn") if "google" in reason else "")
    else:
        yield ok(_("files being written"), _("are read as far as their writers have flushed them"))


def staging(settings: Settings) -> Iterator[Finding]:
    """Check that this user can write to the directory in which jobs are staged."""
    home = YarnEngine(settings.values).home
    files = filesystem(home, settings["hadoop_conf_dir"])
    uri = uris.join(home, f".doctor-{uuid.uuid4().hex[:8]}")
    files.mkdirs(home, 0o700)
    try:
        files.write_bytes(uri, b"howdah doctor\n", 0o600)
        whole = files.read_bytes(uri) == b"howdah doctor\n"
    finally:
        files.delete(uri)
    if whole:
        yield ok(_("staging"), _("{uri} can be written and read", uri=home))
    else:
        yield fail(_("staging"), _("{uri}: a file read back differs from what was written", uri=home), "")


def web(configuration: conf.Configuration) -> Iterator[Finding]:
    """Check that the pages of jobs can be reached through the ResourceManager's proxy; its answer has the cluster's
    time, too."""
    address = web_address(configuration)
    try:
        with urllib.request.urlopen(f"{address}/ws/v1/cluster/info", timeout=MAX_ANSWER_S / 3) as answer:  # noqa: S310
            date = answer.headers.get("Date", "")
    except OSError as error:
        if getattr(error, "code", 0) in (401, 403):
            yield ok(_("pages"), _("{address} answers, and wants a login", address=address))
            date = str(error.headers.get("Date", "")) if hasattr(error, "headers") else ""
        else:
            advice = _("jobs run all the same; `howdah page` shows them without the proxy")
            yield warn(_("pages"), f"{address}: {getattr(error, 'reason', error)}", advice)
            return
    else:
        yield ok(_("pages"), _("{address} answers", address=address))
    if date:
        yield clock(email.utils.parsedate_to_datetime(date).timestamp() - time.time())


def clock(skew: float) -> Finding:
    """Check the cluster's clock against this machine's."""
    text = _("{seconds} s apart from the cluster's", seconds=round(abs(skew)))
    if abs(skew) > LARGE_SKEW_S:
        return fail(_("clock"), text, _("set it by NTP: messages older than five minutes are refused"))
    if abs(skew) > SKEW_S:
        return warn(_("clock"), text, _("set it by NTP"))
    return ok(_("clock"), text)
