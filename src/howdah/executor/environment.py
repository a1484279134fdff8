"""Builds a program's environment from the container, the assignment, the world and the secrets, in that order."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Sequence, Tuple, Union

from howdah.executor.identity import PRIVATE
from howdah.executor.process import libhdfs
from howdah.executor.process.experiment_trackers import tracker_variables
from howdah.executor.process.pipelines import watch_pipelines, watch_words
from howdah.wire.messages import Assignment

# The placeholder that a framework writes for the log directory, since only the node knows the directory.
LOG_DIRECTORY = "<LOG_DIR>"
# The directory that howdah was imported from: its libraries are made for the executor's Python, not the program's.
_OWN_PATH = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build(
    container: Mapping[str, str],
    assignment: Assignment,
    world: Mapping[str, str],
    secrets: Mapping[str, str],
    directory: str,
) -> Dict[str, str]:
    """Return the environment. Relative entries of program_path are relative to the working directory `directory`.

    Absolute entries are paths of the image, if the program runs in one.

    Raises:
        OSError: an entry does not exist; the program would run under another Python than the job names.
    """
    environment = {name: value for name, value in container.items() if name not in PRIVATE}
    _remove_own_path(environment)
    environment.update(assignment.environment)
    environment.update(world)
    environment.update({name: value for name, value in secrets.items() if name in assignment.secrets})
    environment.update(tracker_variables(environment))
    environment.setdefault("PYTHONUNBUFFERED", "1")
    _check_directories(paths_on_node(assignment, directory))
    own = [os.path.join(directory, entry) for entry in assignment.program_path]
    if own:
        environment["PATH"] = os.pathsep.join([*own, environment.get("PATH", os.defpath)])
    # A script that is a link into a cache finds its neighbours: Python looks beside the link's target only.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), directory]))
    for name, entries in assignment.extend.items():
        environment[name] = _extended(name, environment.get(name, ""), entries)
    environment.update(libhdfs.variables(environment))
    environment["PWD"] = directory
    return environment


def _extended(name: str, value: str, entries: str) -> str:
    """Return the list with the entries appended. If the entry `$NAME` is among them, the list takes the place of that
    entry."""
    parts, own = entries.split(os.pathsep), "$" + name
    parts = [value if part == own else part for part in (parts if own in parts else [value, *parts])]
    return os.pathsep.join(filter(None, parts))


def python_of(environment: Mapping[str, str]) -> str:
    """Find the interpreter to which a program's `python3` or `python` leads; "" if there is none."""
    directories = environment.get("PATH", os.defpath).split(os.pathsep)
    found = (os.path.join(directory, name) for name in ("python3", "python") for directory in directories)
    return next((path for path in found if os.access(path, os.X_OK)), "")


def write_files(files: Mapping[str, str], directory: str) -> None:
    """Write `files`, texts by name, to the program's working directory."""
    for name, text in files.items():
        path = os.path.join(directory, os.path.basename(name))
        if os.path.islink(path):  # its target is in a cache that others share
            os.unlink(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def with_log_directory(world: Mapping[str, str], log_directory: str) -> Dict[str, str]:
    """Put the log directory of this node into the world's variables."""
    return {name: value.replace(LOG_DIRECTORY, log_directory) for name, value in world.items()}


def argv_of(command: Union[str, Tuple[str, ...]]) -> Tuple[str, ...]:
    """Return the words to run. A command of one line is run by bash, or by sh if there is no bash."""
    if not isinstance(command, str):
        return watch_words(command)
    if os.path.exists("/bin/bash"):
        return ("/bin/bash", "-c", watch_pipelines(command))
    return ("/bin/sh", "-c", command)


def paths_on_node(assignment: Assignment, directory: str) -> List[str]:
    """Return the directories of program_path that are on this node, and not in the image that the program runs in."""
    in_image = assignment.image is not None and assignment.image.check is None
    paths = assignment.program_path
    return [os.path.join(directory, path) for path in paths if not (in_image and os.path.isabs(path))]


def _check_directories(paths: Sequence[str]) -> None:
    for path in paths:
        if not os.path.isdir(path):
            raise OSError(f"{path}: no such directory on this node; the job's environment names it")


def _remove_own_path(environment: Dict[str, str]) -> None:
    entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    kept = [entry for entry in entries if os.path.abspath(entry) != _OWN_PATH]
    environment.pop("PYTHONPATH", None)
    if kept:
        environment["PYTHONPATH"] = os.pathsep.join(kept)
