"""`howdah kernel install`: a kernel for notebooks on one's own machine, which runs as a job."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _
from howdah.cli.job_arguments import ARGUMENTS, CommandWithProgram, job_options


@click.group()
def kernel() -> None:
    """Kernels for notebooks that run as jobs."""


@kernel.command(cls=CommandWithProgram)
@job_options
@click.option("--display-name", default="", help="Name that notebooks show; else --name.")
def install(name: str, display_name: str, **_options: Any) -> None:
    """Add the kernel --name for notebooks, which runs as a job with the other options."""
    if not name:
        raise click.UsageError(_("--name is missing: the name of the kernel"))
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        from howdah.jupyter.kernel_provisioner import plan
    except ImportError as error:
        raise click.UsageError(
            _("{module} is not installed here: install Jupyter beside howdah", module=error.name)
        ) from None
    arguments = click.get_current_context().meta[ARGUMENTS]
    with tempfile.TemporaryDirectory() as directory:
        key = Path(directory, "key")
        key.write_text("")
        prepared = plan(arguments, key)  # wrong options are told now
        specification = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": display_name or name,
            "language": "python",
            "interrupt_mode": "message",
            "metadata": {"kernel_provisioner": {"provisioner_name": "howdah", "config": {"arguments": arguments}}},
        }
        source = Path(directory, "kernel")
        source.mkdir()
        (source / "kernel.json").write_text(json.dumps(specification, indent=1))
        place = KernelSpecManager().install_kernel_spec(str(source), name, user=True)
    click.echo(_("kernel {name} runs on {engine}: {place}", name=name, engine=prepared.engine.name, place=place))
