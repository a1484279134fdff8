"""`howdah sandbox`: a real Hadoop on this machine's loopback, for trying things and for tests."""

from __future__ import annotations

import click

from howdah.cli.language import say
from howdah.cli.show import columns
from howdah.errors import EngineUnavailable
from howdah.spec.codec import to_json


@click.group()
def sandbox() -> None:
    """A real Hadoop on this machine's loopback: NameNode, DataNode, ResourceManager, NodeManagers."""


@sandbox.command()
@click.option("--hadoop", default="3.5", show_default=True, help="Version: 3.3, 3.4, 3.5, or a full one.")
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(1, 20), help="NodeManagers.")
def up(hadoop: str, nodes: int) -> None:
    """Start it; `howdah run --on yarn` uses it from then on, unless HADOOP_CONF_DIR says otherwise."""
    from howdah.sandbox import Sandbox

    box = Sandbox(hadoop=hadoop, nodes=nodes)
    box.up(lambda text: click.echo(text, err=True))
    click.echo(
        say(
            "sandbox is up: Hadoop {version}, {nodes} nodes; HADOOP_CONF_DIR={conf}",
            version=box.shape.hadoop,
            nodes=nodes,
            conf=box.conf_dir,
        )
    )


@sandbox.command()
@click.option("--keep", is_flag=True, help="Keep its data for the next `up`.")
def down(keep: bool) -> None:
    """Stop its daemons, and remove its data."""
    from howdah.sandbox import Sandbox

    box = Sandbox.open()
    if box is None:
        click.echo(say("no sandbox is up"))
        return
    box.down(keep, lambda text: click.echo(text, err=True))
    click.echo(say("sandbox is down"))


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def status(as_json: bool) -> None:
    """List its daemons."""
    from dataclasses import asdict

    from howdah.sandbox import Sandbox

    box = Sandbox.open()
    if box is None:
        click.echo(say("no sandbox is up"), err=True)
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
