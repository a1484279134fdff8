"""Finds the tool of this machine that runs container images, and removes the containers that killed executors left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

TOOLS = ("podman", "docker", "apptainer")
"""The tools that run images, in the order in which they are tried."""
LABEL = "howdah-container"
"""The label of every container that howdah runs; its value is the id that the engine gave the task's container."""
_LIMIT_S = 20.0


def find_tool(wanted: str, path: str | None = None) -> str:
    """Return the path of the wanted tool, or with "" of the first tool that is installed; "" if there is none."""
    found = (shutil.which(name, path=path) for name in ([wanted] if wanted else TOOLS))
    return next((tool for tool in found if tool), "")


def container_name(container_id: str, run: str) -> str:
    """Return the name of a run in the task's container of this id, for the tool's own list."""
    return "-".join(("howdah", _replace_special_letters(container_id), run))


def remove_containers(prefix: str) -> int:
    """Remove the containers of podman and docker for tasks whose container id begins with `prefix`; return how many
    were found.

    A container removes itself when its program ends. It stays only if the tool's own process was killed, too.
    """
    found = 0
    for name in TOOLS[:2]:
        tool = find_tool(name)
        listed = _output(tool, "ps", "-a", "--filter", f"label={LABEL}", "--format", "{{.Names}}").split()
        left = [entry for entry in listed if entry.startswith(f"howdah-{_replace_special_letters(prefix)}")]
        if left:
            at_once = ("-t", "0") if name == "podman" else ()
            # The first time podman finds that its own process of the container is gone, and fails.
            _ = _output(tool, "rm", "-f", *at_once, *left) or _output(tool, "rm", "-f", *at_once, *left)
            found += len(left)
    return found


def _replace_special_letters(text: str) -> str:
    return re.sub(r"[^\w.-]", "-", text)


def _output(tool: str, *words: str) -> str:
    """Return the tool's output; "" if the tool is missing, or does not answer in time."""
    if not tool:
        return ""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOWDAH_")}
    try:
        done = subprocess.run(
            (tool, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
