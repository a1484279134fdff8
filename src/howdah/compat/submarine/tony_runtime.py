"""Makes the job of the runtime of 0.3 and 0.4: options become TonY's keys, which `compat.tony` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from howdah.compat import Parsed
from howdah.compat.submarine.options import ROLES, SubmarineOptions
from howdah.compat.submarine.service_runtime import kind

if TYPE_CHECKING:
    from howdah.compat.submarine.launch import Commands


def wanted(options: SubmarineOptions) -> bool:
    """Return whether an option is set that only this runtime had."""
    return options.given("insecure") or any(text.startswith("tony.") for text in options.listed("conf"))


def job(options: SubmarineOptions, commands: Commands, folder: Path, environ: Mapping[str, str], hadoop: str) -> Parsed:
    """Return the job that TonY makes of the roles.

    Raises:
        SpecError: `compat.tony` refuses a key.
    """
    from howdah.compat.tony import Tony  # only these jobs need it
    from howdah.compat.tony.conf import Conf
    from howdah.compat.tony.options import TonyOptions, pair

    conf = Conf(environ, hadoop)
    framework = options.text("framework", "tensorflow").lower()
    servers = "server" if framework == "mxnet" else "ps"

    def put(key: str, value: str, option: str) -> None:
        conf.set(key, value)
        conf.origins[key] = options.where(option)

    put("tony.application.name", options.text("name"), "name")
    put("tony.application.framework", framework, "framework")
    put("tony.yarn.queue", options.text("queue"), "queue")
    for role, requested in commands.roles.items():
        name = servers if role == "ps" else role
        put(f"tony.{name}.instances", str(commands.counts[role]), ROLES[role])
        put(f"tony.{name}.command", str(requested.command), f"{role}_launch_cmd")
        size = requested.resources
        for what, amount in (("memory", f"{size.memory_mib}m"), ("vcores", size.vcores), ("gpus", size.gpus)):
            put(f"tony.{name}.{what}", str(amount), f"{role}_resources")
    for text in options.listed("conf"):
        key, value = pair(text, "--conf", conf.mistakes)
        conf.set(key, value)
        if not key.startswith("tony."):
            options.notes.append(f"--conf {key}: has no effect, only tony.… keys have")
    parsed = Tony(folder, environ, hadoop).job("cluster", TonyOptions(), conf)
    roles = dict(parsed.job.roles)
    for name, made in parsed.job.roles.items():
        if source := commands.roles.get(kind(name)):
            resources = replace(made.resources, named=source.resources.named)
            roles[name] = replace(made, resources=resources, image=made.image or source.image)
    return replace(parsed, job=replace(parsed.job, roles=roles))
