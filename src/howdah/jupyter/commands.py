"""`howdah kernel install`: a kernel for notebooks on one's own machine, which runs as a job."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _
from howdah.cli.job_arguments import ARGUMENTS, CommandWithProgram, job_options
from howdah.errors import StagingError

_PROVISIONER = "howdah"
"""The entry point by which Jupyter finds `howdah.jupyter.kernel_provisioner`."""


@click.group()
def kernel() -> None:
    """Notebook kernels that run as jobs."""


@kernel.command(cls=CommandWithProgram)
@job_options
@click.option("--display-name", default="", help="Name that notebooks show; --name by default.")
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
    manager = KernelSpecManager()
    _refuse_others(Path(manager.user_kernel_dir, name.lower()))
    arguments = click.get_current_context().meta[ARGUMENTS]
    with tempfile.TemporaryDirectory() as directory:
        key = Path(directory, "key")
        key.write_text("")
        here = str(Path.cwd())  # Jupyter starts kernels from a directory of its own
        prepared = plan(arguments, key, here)  # wrong options are reported now
        config = {"arguments": arguments, "directory": here}
        specification = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": display_name or name,
            "language": "python",
            "interrupt_mode": "message",
            "metadata": {"kernel_provisioner": {"provisioner_name": _PROVISIONER, "config": config}},
        }
        source = Path(directory, "kernel")
        source.mkdir()
        (source / "kernel.json").write_text(json.dumps(specification, indent=1))
        place = manager.install_kernel_spec(str(source), name, user=True)
    click.echo(_("kernel {name} runs on {engine}: {place}", name=name, engine=prepared.engine.name, place=place))


def _refuse_others(place: Path) -> None:
    """Refuse to replace a kernel that is not howdah's, because Jupyter removes whatever is at the place.

    Raises:
        StagingError: the place has another kernel.
    """
    try:
        found = json.loads((place / "kernel.json").read_bytes())
        is_own = found["metadata"]["kernel_provisioner"]["provisioner_name"] == _PROVISIONER
    except (OSError, ValueError, LookupError, TypeError):
        is_own = False
    if os.path.lexists(place) and not is_own:
        raise StagingError(f"{place} exists, and is no kernel of howdah's: choose another --name")
