"""The doctor's checks of this machine as an engine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

from howdah.cli.findings import Finding, ok, warn
from howdah.cli.i18n import _
from howdah.config.settings import Settings
from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.machine import Machine
from howdah.localfiles.container_tools import find_tool
from howdah.spec.units import format_memory


def checks(settings: Settings) -> Iterator[Finding]:
    """Check the resources that jobs on this machine can have."""
    here = Machine.detect()
    said = _(
        "{memory}, {vcores} vcores, {gpus} GPUs for jobs",
        memory=format_memory(here.memory_mib),
        vcores=here.vcores,
        gpus=len(here.gpus),
    )
    yield ok("local", said)
    wanted = settings["container_tool"]
    if tool := find_tool(wanted):
        yield ok("images", tool)
    elif wanted:
        advice = _("install {tool}, or `howdah config unset container_tool`", tool=wanted)
        yield warn("images", _("container_tool is {tool}, which is not installed here", tool=wanted), advice)
    try:
        MemoryGroup.create(f"doctor-{os.getpid()}", 64).remove()
    except OSError as error:
        advice = _("jobs run without memory limits; give your user control groups (systemd: Delegate=memory)")
        yield warn("cgroups", str(error), advice)
    else:
        yield ok("cgroups", _("memory limits are enforced"))
    if here.gpus and importlib.util.find_spec("pynvml") is None:
        yield warn("GPU", _("there are GPUs, but nothing to measure them with"), "pip install nvidia-ml-py")
