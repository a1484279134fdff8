"""`howdah sandbox`: a real Hadoop on this machine's loopback, for trying things and for tests."""

from __future__ import annotations

import click

from howdah.cli.i18n import _
from howdah.cli.terminal import columns
from howdah.client.engine_registry import settings_for
from howdah.errors import EngineUnavailable, SpecError
from howdah.spec.codec import to_json
from howdah.spec.units import memory_mib


@click.group()
def sandbox() -> None:
    """A real Hadoop on this machine's loopback: NameNode, DataNode, ResourceManager, NodeManagers."""


@sandbox.command()
@click.option("--hadoop", help="Version: 3.3, 3.4, 3.5 (the default), or a full one.")
@click.option("--nodes", type=click.IntRange(1, 20), help="NodeManagers; 3 by default.")
@click.option("--memory", metavar="MEMORY", help="Memory that each node offers for jobs; 8GiB by default.")
@click.option(
    "--vcores", type=click.IntRange(1), metavar="N", help="Virtual cores that each node offers; 8 by default."
)
def up(hadoop: str | None, nodes: int | None, memory: str | None, vcores: int | None) -> None:
    """Start it, or what of it has ended; `howdah run --on yarn` uses it, unless HADOOP_CONF_DIR says otherwise."""
    from howdah.sandbox import Sandbox

    given = {"hadoop": hadoop, "nodes": nodes, "memory_mib": _mib(memory), "vcores": vcores}
    known = Sandbox.open()
    shape = vars(known.shape) if known is not None else {}
    box = Sandbox(**{**shape, **{name: value for name, value in given.items() if value is not None}})
    box.up(lambda text: click.echo(text, err=True))
    click.echo(
        _(
            "sandbox is up: Hadoop {version}, {nodes} nodes; HADOOP_CONF_DIR={conf}",
            version=box.shape.hadoop,
            nodes=box.shape.nodes,
            conf=box.conf_dir,
        )
    )


def _mib(memory: str | None) -> int | None:
    try:
        return memory_mib(memory) if memory else None
    except ValueError as error:
        raise SpecError.at("--memory", f"is {memory!r}, {error}") from None


def ended_daemons() -> str:
    """Return a sentence if the sandbox is the configured cluster and daemons of it have ended; else ""."""
    from howdah.sandbox import Sandbox

    box, conf_dir = Sandbox.open(), settings_for({"engine": "yarn"})["hadoop_conf_dir"]
    if box is None or conf_dir not in ("", str(box.conf_dir)):
        return ""
    ended = [daemon for daemon in box.status() if not daemon.up]
    if not ended:
        return ""
    names = ", ".join(f"{daemon.title} ({daemon.name})" for daemon in ended)
    return _(
        "these daemons of the sandbox have ended: {names}; `howdah sandbox up` restarts them, {log} has the reasons",
        names=names,
        log=ended[0].log,
    )


@sandbox.command()
@click.option("--keep", is_flag=True, help="Keep its data for the next `up`.")
def down(keep: bool) -> None:
    """Stop its daemons, and remove its data."""
    from howdah.sandbox import Sandbox

    box = Sandbox.open()
    if box is None:
        click.echo(_("no sandbox is up"))
        return
    box.down(keep, lambda text: click.echo(text, err=True))
    click.echo(_("sandbox is down"))


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def status(as_json: bool) -> None:
    """List its daemons."""
    from dataclasses import asdict

    from howdah.sandbox import Sandbox

    box = Sandbox.open()
    if box is None:
        click.echo(_("no sandbox is up"), err=True)
        raise SystemExit(1)
    daemons = [asdict(daemon) for daemon in box.status()]
    if as_json:
        for daemon in daemons:
            click.echo(to_json(daemon))
        return
    for line in columns([tuple(daemons[0]), *(tuple(map(str, daemon.values())) for daemon in daemons)]):
        click.echo(line)


@sandbox.command()
def env() -> None:
    """Print the line that points Hadoop clients at it: `eval "$(howdah sandbox env)"`."""
    from howdah.sandbox import current

    box = current()
    if box is None:
        raise EngineUnavailable("no sandbox is up: `howdah sandbox up` starts one")
    for name, value in box.env().items():
        click.echo(f"export {name}={value}")
