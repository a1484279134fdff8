"""Makes a job without a file from a command and a few options, each of which is one field of the spec.

The job has one role, `worker`. Its options are read as a job file is, so that values, units and mistakes are the same;
a message about a value names the option instead of a line.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from howdah.client.command_scripts import WorkingFiles, launches_of_command
from howdah.client.standard_input import NAME as STDIN
from howdah.config.job_file import LoadedJob, from_tree, to_yaml
from howdah.config.yaml_tree import Items, Keys, Node, Text
from howdah.errors import SpecError
from howdah.localfiles import regular_file
from howdah.spec.message import message
from howdah.spec.values import dataclass

ROLE = "worker"
_COMMAND = "the command"
_MAX_ENV_FILE = 1 << 20


@dataclass(frozen=True)
class CommandOptions:
    """The values of the options; "" or () where an option is not given."""

    replicas: str = ""
    memory: str = ""
    vcores: str = ""
    gpus: str = ""
    framework: str = ""
    requirements: str = ""
    conda: str = ""
    files: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    """Inputs, each as `path#name`, as in a job file."""
    outputs: tuple[str, ...] = ()
    """Outputs, each as `path#directory`: the `directory` of the working directory is stored at `path`."""
    env: tuple[str, ...] = ()
    """Variables, each as `NAME=VALUE`, or `NAME` for the variable's present value."""
    env_files: tuple[str, ...] = ()
    """Files that have a variable in each line, in the form of `env`."""
    secrets: tuple[str, ...] = ()
    """Secrets, each as `NAME=env:VARIABLE`, `NAME=file:PATH`, or `NAME` for the variable of this name."""
    stdin: str = ""
    """A file from which each task reads its standard input."""

    @property
    def given(self) -> list[str]:
        """Return the options that were given, as they are typed."""
        names = {"files": "file", "inputs": "input", "outputs": "output", "secrets": "secret"}
        names["env_files"] = "env-file"
        return [f"--{names.get(name, name)}" for name in self.__dataclass_fields__ if getattr(self, name)]


def load_command(
    words: Sequence[str],
    options: CommandOptions,
    base_directory: Path,
    sets: Mapping[str, str],
    fields: Mapping[str, str],
    notice: Callable[[str], None],
    own_words: Sequence[str] | None = None,
    variables: Sequence[str] = (),
) -> LoadedJob:
    """Make the job that runs `words`, a program and its arguments (a single word: a shell line), from `base_directory`.
    Files are sent along that `own_words` name, all of the words unless given. `variables` are names of variables, which
    have their values in `sets`: `${name}` in a word becomes the value.

    `notice` is called with the files and the framework that were chosen because the command needs them.

    Raises:
        SpecError: the job has mistakes; the error has all of them.
    """
    from howdah.client.program_files import MAX_BYTES, MAX_FOLLOWED, files_of_command  # job files need none of it

    naming = words if own_words is None else own_words
    found = files_of_command(naming, base_directory, {entry.partition("#")[0].rstrip("/") for entry in options.files})
    sent = found.files
    is_single = options.replicas in ("", "1")
    framework, program, module = found.framework(is_single) if not options.framework else ("", "", "")
    if not options.framework:
        files = WorkingFiles((*sent, *options.files), base_directory)
        launches = launches_of_command(words if len(words) > 1 else words[0], files, {})
        # What a script runs only in some case chooses nothing: the submission says that it may run it.
        sure = (launch for launch in launches if launch.is_certain or not launch.script)
        launch = next((launch for launch in sure if launch.launcher.starts_alone), None)
        if launch is not None:
            framework, program, module = launch.launcher.framework, "", ""
            runs = launch.script or "the command"
            notice(f"framework: {framework}, for {runs} runs {launch.launcher.name} (--framework says otherwise)")
    if sent:
        notice(f"files sent along: {', '.join(sent)} (--file adds others)")
    if not found.is_whole:
        notice(message("imports were followed in the first {count} Python files only", count=MAX_FOLLOWED))
    for name in found.too_large:
        notice(
            message(
                "{name}, which a package imports, is larger than {mib} MiB and not sent along; `--file` sends it",
                name=name,
                mib=MAX_BYTES >> 20,
            )
        )
    if program:
        notice(f"framework: {framework}, for {program} imports {module} (--framework says otherwise)")
    root = _job_file_tree(words, options, sent, framework, base_directory)
    if variables:
        root = Keys(
            {**root.entries, "vars": Keys({name: Text("", _COMMAND) for name in variables}, _COMMAND)}, _COMMAND
        )
    spec, sources = from_tree(root, [], _COMMAND, sets, os.environ, fields)
    return LoadedJob(spec, base_directory, sources, to_yaml(spec))


def _job_file_tree(
    words: Sequence[str], options: CommandOptions, sent: Sequence[str], framework: str, base: Path
) -> Keys:
    command: Node = Text(words[0], _COMMAND, False)
    if options.stdin:
        line = words[0] if len(words) == 1 else shlex.join(words)
        command = Text(f"{line} < {STDIN}" if len(words) > 1 else f"{{ {line}\n}} < {STDIN}", _COMMAND, False)
    elif len(words) > 1:
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
    if options.stdin:
        files.append(Text(f"{options.stdin}#{STDIN}", "--stdin", False))
    if files:
        root["files"] = Items(tuple(files), "--file")
    if options.requirements or options.conda:
        place = "--requirements" if options.requirements else "--conda"
        root["environment"] = Keys(_text_nodes(options, "requirements", "conda"), place)
    variables = [pair for file in options.env_files for pair in _variables_of_file(base / file)]
    variables += [_variable(text, "--env") for text in options.env]
    if variables:
        root["env"] = Keys(dict(variables), "--env")
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


def _variable(text: str, place: str) -> tuple[str, Text]:
    name, given, value = text.partition("=")
    if not given and name not in os.environ:
        raise SpecError.at(place, f"{name!r} is not set here: give NAME=VALUE, or set it")
    return name, Text(value if given else os.environ[name], place, False)


def _variables_of_file(path: Path) -> list[tuple[str, Text]]:
    """Return the variables of a file in Docker's form. As in files for shells, `export` may come first, and quotes
    around a value are removed."""
    try:
        lines = regular_file.read(path, _MAX_ENV_FILE).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise SpecError.at("--env-file", f"{path}: {getattr(error, 'strerror', None) or error}") from error
    found = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            name, given, value = line.removeprefix("export ").partition("=")
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            text = f"{name.strip()}{given}{value[1:-1] if quoted else value}"
            found.append(_variable(text, f"{path.name}:{number}"))
    return found


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
