"""`howdah sandbox`: a real Hadoop, Slurm, Kubernetes or Spark on this machine, for trying things and for tests."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from howdah.cli.i18n import _
from howdah.cli.terminal import columns, json_option, print_result
from howdah.client.engine_registry import settings_for
from howdah.errors import EngineUnavailable, SpecError
from howdah.spec.codec import to_json
from howdah.spec.units import memory_mib

if TYPE_CHECKING:
    from howdah.sandbox import KubernetesSandbox, Sandbox, SlurmSandbox, SparkSandbox

    AnySandbox = Sandbox | SlurmSandbox | KubernetesSandbox | SparkSandbox


@click.group()
def sandbox() -> None:
    """A real Hadoop, Slurm, Kubernetes or Spark on this machine, with all of its daemons and several nodes."""


@sandbox.command()
@click.option("--hadoop", help="Version: 3.3, 3.4, 3.5 (the default), or a full one.")
@click.option("--slurm", is_flag=True, help="Start Slurm instead, beside whatever else is up.")
@click.option("--kubernetes", is_flag=True, help="Start Kubernetes instead, as root; it is built once, in 10 minutes.")
@click.option("--spark", is_flag=True, help="Start Spark instead; it is fetched once, 456 MB.")
@click.option("--nodes", type=click.IntRange(1, 20), help="Number of nodes; 3 by default, 2 for Kubernetes and Spark.")
@click.option("--memory", metavar="MEMORY", help="Memory that each node offers for jobs; 8GiB by default.")
@click.option(
    "--vcores", type=click.IntRange(1), metavar="N", help="Virtual cores that each node offers; 8 by default."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def up(
    hadoop: str | None,
    slurm: bool,
    kubernetes: bool,
    spark: bool,
    nodes: int | None,
    memory: str | None,
    vcores: int | None,
    as_json: bool,
) -> None:
    """Start the sandbox, or those of its daemons that have ended. Several of the options start several systems. `howdah
    run --on yarn` (or slurm, kubernetes) uses it, unless HADOOP_CONF_DIR (SLURM_CONF, KUBECONFIG) says otherwise."""
    sizes = {"nodes": nodes, "memory_mib": _mib(memory), "vcores": vcores}
    given = {name: value for name, value in sizes.items() if value is not None}
    if hadoop is not None or not (slurm or kubernetes or spark):
        _start_hadoop(given if hadoop is None else {"hadoop": hadoop, **given}, as_json)
    for wanted, start in ((slurm, _start_slurm), (kubernetes, _start_kubernetes), (spark, _start_spark)):
        if wanted:
            start(given, as_json)


def _start_hadoop(given: Mapping[str, Any], as_json: bool) -> None:
    from howdah.sandbox import Sandbox

    known = Sandbox.open()
    shape = vars(known.shape) if known is not None else {}
    box = Sandbox(**{**shape, **given})
    box.up(_Progress())
    print_result(
        _(
            "sandbox is up: Hadoop {version}, {nodes} nodes; `howdah run job.yaml --on yarn` uses it; "
            "HADOOP_CONF_DIR={conf}",
            version=box.shape.hadoop,
            nodes=box.shape.nodes,
            conf=box.conf_dir,
        ),
        {"sandbox": "hadoop", "variables": box.env()},
        as_json,
    )


def _start_slurm(given: Mapping[str, Any], as_json: bool) -> None:
    from howdah.sandbox import SlurmSandbox
    from howdah.sandbox.slurm_conf import SlurmShape

    known = SlurmSandbox.open()
    box = SlurmSandbox(shape=SlurmShape(**{**(vars(known.shape) if known is not None else {}), **given}))
    box.up(_Progress())
    print_result(
        _(
            "sandbox is up: Slurm, {nodes} nodes; `howdah run job.yaml --on slurm` uses it; SLURM_CONF={conf}",
            nodes=box.shape.nodes,
            conf=box.env()["SLURM_CONF"],
        ),
        {"sandbox": "slurm", "variables": box.env()},
        as_json,
    )


def _start_kubernetes(given: Mapping[str, Any], as_json: bool) -> None:
    from howdah.sandbox import KubernetesSandbox

    known = KubernetesSandbox.open()
    box = KubernetesSandbox(**{**(vars(known.shape) if known is not None else {}), **given})
    box.up(_Progress())
    print_result(
        _(
            "sandbox is up: Kubernetes {version}, {nodes} nodes; `howdah run job.yaml --on kubernetes` uses it; "
            "KUBECONFIG={kubeconfig}",
            version=box.version,
            nodes=box.shape.nodes,
            kubeconfig=box.kubeconfig,
        ),
        {"sandbox": "kubernetes", "variables": box.env()},
        as_json,
    )


def _start_spark(given: Mapping[str, Any], as_json: bool) -> None:
    from howdah.sandbox import SparkSandbox
    from howdah.sandbox.spark import SparkShape

    known = SparkSandbox.open()
    box = SparkSandbox(shape=SparkShape(**{**(vars(known.shape) if known is not None else {}), **given}))
    box.up(_Progress())
    print_result(
        _(
            "sandbox is up: Spark {version}, {nodes} workers; `howdah run job.yaml --on spark` uses it; to try it: {command}",  # noqa: E501 - one sentence
            version=box.version,
            nodes=box.shape.nodes,
            command=box.try_command(),
        ),
        {"sandbox": "spark", "variables": box.env()},
        as_json,
    )


class _Progress:
    """Prints the steps of a start or stop. On a terminal, a line that continues the last one replaces it."""

    def __init__(self) -> None:
        self._topic = ""

    def __call__(self, text: str) -> None:
        topic = text.partition(":")[0]
        if sys.stderr.isatty() and topic == self._topic:
            text = f"\x1b[1A\x1b[2K{text}"
        self._topic = topic
        click.echo(text, err=True)


def _mib(memory: str | None) -> int | None:
    try:
        return memory_mib(memory) if memory else None
    except ValueError as error:
        raise SpecError.at("--memory", f"is {memory!r}, {error}") from None


def ended_daemons(engine: str = "") -> str:
    """Return a sentence if daemons have ended of a sandbox that is the configured cluster (of `engine`, if given); else
    ""."""
    for box in _existing():
        name, setting, start = _OF_ENGINES.get(type(box).__name__, ("", "", ""))
        if not name or engine not in ("", name):
            continue
        variables = box.env()
        chosen = [settings_for({"engine": name})[setting], *(os.environ.get(variable, "") for variable in variables)]
        ended = [daemon for daemon in box.status() if not daemon.up]
        if ended and all(value in ("", *variables.values()) for value in chosen):
            return _(
                "these daemons of the sandbox have ended: {names}; `{command}` restarts them, {log} has the reasons",
                names=", ".join(f"{daemon.title} ({daemon.name})" for daemon in ended),
                command=start,
                log=ended[0].log,
            )
    return ""


_OF_ENGINES = {
    "Sandbox": ("yarn", "hadoop_conf_dir", "howdah sandbox up"),
    "SlurmSandbox": ("slurm", "slurm.conf", "howdah sandbox up --slurm"),
    "KubernetesSandbox": ("kubernetes", "kubernetes.kubeconfig", "howdah sandbox up --kubernetes"),
}
"""The engine of each sandbox, the setting that names the cluster, and the command that starts daemons again."""


def _existing() -> list[AnySandbox]:
    from howdah.sandbox import KubernetesSandbox, Sandbox, SlurmSandbox, SparkSandbox

    found = (Sandbox.open(), SlurmSandbox.open(), KubernetesSandbox.open(), SparkSandbox.open())
    return [box for box in found if box is not None]


@sandbox.command()
@click.option("--keep", is_flag=True, help="Keep its data for the next `up`.")
@click.option("--hadoop", is_flag=True, help="Stop Hadoop alone.")
@click.option("--slurm", is_flag=True, help="Stop Slurm alone.")
@click.option("--kubernetes", is_flag=True, help="Stop Kubernetes alone.")
@click.option("--spark", is_flag=True, help="Stop Spark alone.")
@json_option
def down(keep: bool, hadoop: bool, slurm: bool, kubernetes: bool, spark: bool, as_json: bool) -> None:
    """Stop its daemons, and remove its data."""
    from howdah.sandbox import KubernetesSandbox, Sandbox, SlurmSandbox, SparkSandbox

    named = ((Sandbox, hadoop), (SlurmSandbox, slurm), (KubernetesSandbox, kubernetes), (SparkSandbox, spark))
    wanted = [kind for kind, alone in named if alone]
    found = [box for box in _existing() if not wanted or isinstance(box, tuple(wanted))]
    if not found:
        print_result(_("no sandbox is up"), {"stopped": []}, as_json)
        return
    stopped = [daemon.name for box in found for daemon in box.status() if daemon.up]
    for box in found:
        box.down(keep, _Progress())
    print_result(_("sandbox is down"), {"stopped": stopped}, as_json)


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def status(as_json: bool) -> None:
    """List its daemons."""
    from dataclasses import asdict

    daemons = [asdict(daemon) for box in _existing() for daemon in box.status()]
    if not daemons:
        click.echo(_("no sandbox is up"), err=True)
        raise SystemExit(1)
    if as_json:
        for daemon in daemons:
            click.echo(to_json(daemon))
        return
    for line in columns([tuple(daemons[0]), *(tuple(map(str, daemon.values())) for daemon in daemons)]):
        click.echo(line)


@sandbox.command()
@json_option
def env(as_json: bool) -> None:
    """Print the lines that point other clients at it: `eval "$(howdah sandbox env)"`."""
    running = [box for box in _existing() if box.is_up()]
    if not running:
        raise EngineUnavailable("no sandbox is up: `howdah sandbox up` starts one")
    variables = {name: value for box in running for name, value in box.env().items()}
    print_result(
        "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()), variables, as_json
    )
