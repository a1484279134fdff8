"""Tests that master, executor, client, API and history name no engine, and nothing that only one engine has: what is an
engine's own comes through the seams (`howdah.engines`), `EngineInfo`, or variables that the engine sets.

The command line may name engines in what people read, such as examples. Its code knows them by these ways alone, but
for the checks of `howdah doctor`, which an `EngineInfo` names, and the sandbox, which is of certain engines.
"""

from __future__ import annotations

import ast
import re

from source import imports, modules, nodes

from howdah.engines.info import known

PACKAGES = ("master", "executor", "client", "api", "history")
ENGINES = sorted({name.split(".")[2] for name in modules() if name.endswith(".engine")} - {"local"})
PARTS = (
    *("nodemanager", "resourcemanager", "nm_host", "applicationmaster", "hadoop_token_file_location"),
    *("slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "kubelet", "kubectl", "apiserver", "pod", "pods"),
)
"""Parts, commands and variables of engines."""
_NAMED = re.compile(rf"(?<![a-z])(?:{'|'.join((*ENGINES, *PARTS))})s?(?![a-z])", re.IGNORECASE)
# The ids of jobs and containers begin with these. `application_type` is a field of events.
_IDS = re.compile(
    rf"(?<![a-z])(?:{'|'.join(re.escape(info.id_prefix) for _, info in known() if info.id_prefix != 'local-')})(?!type)"
    r"|container_(?:\\d|\(|e\d)",
    re.IGNORECASE,
)
# `local` is a plain word, too: it is an engine only where it is compared, or begins an id.
_COMPARED = re.compile(r"""engine\w*(\.name)? *[!=]= *["']|["']local["'] *[!=]=|[!=]= *["']local["']|["']local-["']""")
# A package that programs import has an engine's name.
_FOR_PROGRAMS = re.compile(r'"here\.py", "program", "spark"')
# What is of one engine in the command line.
_OF_ENGINES = re.compile(rf"howdah\.cli\.(sandbox|doctor_({'|'.join((*ENGINES, 'local'))}))")
_HADOOP = re.compile(r"hadoop", re.IGNORECASE)
# Hadoop is also a file system with its configuration, which jobs on every engine may use.
_FILE_SYSTEM = re.compile(r"hadoop_conf_dir|hadoop configuration|howdah\.hadoop", re.IGNORECASE)
_HDFS_MODULES = {"howdah.executor.process.libhdfs"}


def lines_with(found: re.Pattern[str], allowed: re.Pattern[str] | None = None) -> list[str]:
    """Return the lines of the packages in which `found` is, once what is `allowed` is taken away."""
    return [
        f"{module}:{number}: {line.strip()}"
        for module, path in modules().items()
        if module.split(".")[1:] and module.split(".")[1] in PACKAGES and module not in _HDFS_MODULES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if found.search(allowed.sub("", line) if allowed else line)
    ]


def test_no_engine_is_named() -> None:
    assert lines_with(_NAMED, _FOR_PROGRAMS) == []


def test_no_engine_is_known_by_the_form_of_its_ids() -> None:
    assert lines_with(_IDS) == []
    for line in ('job_id.startswith("application_")', r're.compile(r"container_(?:e\d+_)?\d+")', 'f"slurm-{number}"'):
        assert _IDS.search(line), line


def test_nothing_depends_on_the_name_of_an_engine() -> None:
    assert lines_with(_COMPARED) == []


def test_hadoop_is_named_only_as_a_file_system() -> None:
    assert lines_with(_HADOOP, _FILE_SYSTEM) == []


def test_the_code_of_the_command_line_knows_no_engine() -> None:
    of_engines = tuple(f"howdah.engines.{name}" for name in (*ENGINES, "local"))
    every = [name for name in modules() if f"{name}.".startswith("howdah.cli.") and not _OF_ENGINES.match(name)]
    named = [
        f"{module}:{node.lineno}: {node.value}"
        for module in every
        for node in nodes(module)
        if isinstance(node, ast.Constant) and node.value in ENGINES
    ]
    imported = [(module, each) for module in every for each in imports(module) if each.startswith(of_engines)]
    assert (named, imported) == ([], [])
