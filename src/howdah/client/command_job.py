"""Makes a job without a file from a command and a few options, each of which is one field of the spec.

The job has one role, `worker`. Its options are read as a job file is, so that values, units and mistakes are the same;
a message about a value names the option instead of a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from howdah.config.job_file import LoadedJob, from_tree, to_yaml
from howdah.config.yaml_tree import Items, Keys, Node, Text
from howdah.errors import SpecError
from howdah.spec.launchers import find_launcher
from howdah.spec.values import dataclass

ROLE = "worker"
_COMMAND = "the command"


@dataclass(frozen=True)
class CommandOptions:
    """The values of the options; "" or () where an option is not given."""

    replicas: str = ""
    memory: str = ""
    vcores: str = ""
    gpus: str = ""
    framework: str = ""
    requirements: str = ""
    files: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    """Each is `path#name`, as in a job file."""
    outputs: tuple[str, ...] = ()
    """Each is `path#directory`: `directory` of the working directory is kept at `path`."""
    env: tuple[str, ...] = ()
    """Each is `NAME=VALUE`, or `NAME` for the value that the variable has here."""
    secrets: tuple[str, ...] = ()
    """Each is `NAME=env:VARIABLE`, `NAME=file:PATH`, or `NAME` for the variable of this name."""

    @property
    def given(self) -> list[str]:
        """Return the options that were given, as they are typed."""
        names = {"files": "file", "inputs": "input", "outputs": "output", "secrets": "secret"}
        return [f"--{names.get(name, name)}" for name in self.__dataclass_fields__ if getattr(self, name)]


def load_command(
    words: Sequence[str],
    options: CommandOptions,
    base_directory: Path,
    sets: Mapping[str, str],
    fields: Mapping[str, str],
    notice: Callable[[str], None],
) -> LoadedJob:
    """Make the job that runs `words`, a program and its arguments (a single word: a shell line), from `base_directory`.

    `notice` is called with the files and the framework that were chosen because the command needs them.

    Raises:
        SpecError: the job has mistakes; the error has all of them.
    """
    from howdah.client.program_files import files_of_command  # job files need none of it

    found = files_of_command(words, base_directory, {entry.partition("#")[0].rstrip("/") for entry in options.files})
    sent = found.files
    framework, program, module = found.framework if not options.framework else ("", "", "")
    launch = find_launcher(words if len(words) > 1 else words[0]) if not options.framework else None
    if launch is not None and launch[0].starts_alone:
        framework, program, module = launch[0].framework, "", ""
        notice(f"framework: {framework}, for the command runs {launch[0].name} (--framework says otherwise)")
    if sent:
        notice(f"files sent along: {', '.join(sent)} (--file adds others)")
    if program:
        notice(f"framework: {framework}, for {program} imports {module} (--framework says otherwise)")
    if not (framework or options.framework) and options.replicas.isdigit() and int(options.replicas) > 1:
        notice(
            f"framework: generic, so the {options.replicas} tasks are copies that are not told of each other"
            " (--framework says otherwise)"
        )
    root = _job_file_tree(words, options, sent, framework)
    spec, sources = from_tree(root, [], _COMMAND, sets, os.environ, fields)
    return LoadedJob(spec, base_directory, sources, to_yaml(spec))


def _job_file_tree(words: Sequence[str], options: CommandOptions, sent: Sequence[str], framework: str) -> Keys:
    command: Node = Text(words[0], _COMMAND, False)
    if len(words) > 1:
        command = Items(tuple(Text(word, _COMMAND, False) for word in words), _COMMAND)
    resources = _text_nodes(options, "memory", "vcores", "gpus")
    role = {"command": command, **_text_nodes(options, "replicas")}
    if resources:
        role["resources"] = Keys(resources, _COMMAND)
    root: dict[str, Node] = {"name": Text(_name(words), _COMMAND, False)}
    if options.framework or framework:
        root["framework"] = Text(options.framework or framework, "--framework")
    root["roles"] = Keys({ROLE: Keys(role, _COMMAND)}, _COMMAND)
    files = [*(Text(name, _COMMAND, False) for name in sent), *(Text(name, "--file", False) for name in options.files)]
    if files:
        root["files"] = Items(tuple(files), "--file")
    if options.requirements:
        root["environment"] = Keys(_text_nodes(options, "requirements"), "--requirements")
    if options.env:
        root["env"] = Keys(dict(map(_variable, options.env)), "--env")
    if options.secrets:
        pairs = (text.partition("=") for text in options.secrets)
        found = {name: Text(where or f"env:{name}", "--secret", False) for name, _, where in pairs}
        root["secrets"] = Keys(found, "--secret")
    if options.inputs:
        inputs = (Keys({"path": Text(path, "--input", False)}, "--input") for path in options.inputs)
        root["inputs"] = Items(tuple(inputs), "--input")
    if options.outputs:
        root["outputs"] = Items(tuple(map(_output, options.outputs)), "--output")
    return Keys(root, _COMMAND)


def _variable(text: str) -> tuple[str, Text]:
    name, given, value = text.partition("=")
    if not given and name not in os.environ:
        raise SpecError.at("--env", f"{name!r} is not set here: give NAME=VALUE, or set it")
    return name, Text(value if given else os.environ[name], "--env", False)


def _text_nodes(options: CommandOptions, *names: str) -> dict[str, Node]:
    return {name: Text(text, f"--{name}") for name in names if (text := getattr(options, name))}


def _output(text: str) -> Keys:
    path, mark, source = text.rpartition("#")
    entries: dict[str, Node] = {"path": Text(path if mark else text, "--output", False)}
    return Keys({**entries, "from": Text(source, "--output", False)} if mark else entries, "--output")


def _name(words: Sequence[str]) -> str:
    """Return a name for the job after its program: `train` of `python src/train.py`."""
    parts = words[0].split() if len(words) == 1 else words
    programs = (part for part in parts if part.endswith((".py", ".sh")))
    named = next(programs, parts[0] if parts else "")
    return PurePosixPath(named).stem[:200] or "job"
