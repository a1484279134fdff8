"""`howdah init`: writes a job file for a program, with a comment at each line that users may want to change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from howdah.cli.i18n import _, examples
from howdah.cli.job_arguments import CommandWithProgram, command_options, program_words
from howdah.cli.run import notice
from howdah.cli.terminal import json_option, print_result
from howdah.client.command_job import ROLE, CommandOptions, load_command
from howdah.client.command_scripts import launches_of_job
from howdah.client.unconnected_copies import unconnected_copies
from howdah.errors import SpecError, StagingError
from howdah.spec import JobSpec
from howdah.spec.units import memory_text

_RUNNERS = {".py": "python", ".sh": "bash"}
_COLUMN = 44
"""The column at which comments begin after shorter lines."""


@click.command(
    cls=CommandWithProgram,
    epilog=examples(
        "howdah init --replicas 4 --gpus 1 train.py",
        "howdah init --file data --requirements requirements.txt -- python train.py 20",
    ),
)
@click.argument("program", nargs=-1, metavar="PROGRAM")
@command_options
@click.option("--name", default="", help="Name of the job.")
@click.option(
    "--to",
    "target",
    default="job.yaml",
    show_default=True,
    metavar="FILE",
    help="File to write; - prints the job file.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@json_option
def init(program: tuple[str, ...], target: str, name: str, overwrite: bool, as_json: bool, **options: Any) -> None:
    """Write a commented job file that runs PROGRAM (train.py, train.sh) or COMMAND."""
    loaded = load_command(_program_words(program), CommandOptions(**options), Path.cwd(), {}, _job_name(name), notice)
    launches = launches_of_job(loaded.spec, loaded.base_directory)
    if copies := unconnected_copies(loaded.spec, loaded.base_directory, loaded.sources, launches):
        notice(copies)  # the file names the framework, so submissions do not report this
    text = "".join(f"{line}\n" for line in _lines(loaded.spec))
    if target == "-":
        click.echo(text, nl=False)
        return
    try:
        with Path(target).open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StagingError(f"{target}: exists already: choose another by --to, or replace it by --overwrite") from None
    except OSError as error:
        raise StagingError(f"{target}: {error.strerror}") from error
    print_result(_("written: {file}; try it: howdah run {file}", file=target), {"path": target}, as_json)


def _program_words(program: tuple[str, ...]) -> tuple[str, ...]:
    words = program_words()
    if (words is None) == (not program) or len(program) > 1 or words == ():
        raise click.UsageError(_("give a program, such as train.py, or a command after --"))
    if words is not None:
        return words
    (path,) = program
    if Path(path).suffix not in _RUNNERS:
        raise SpecError.at(
            "PROGRAM", f"is {path!r}, must end in .py or .sh; write other programs as a command after --"
        )
    if not Path(path).is_file():
        raise StagingError(f"{path}: no such file")
    return (f"{_RUNNERS[Path(path).suffix]} {path}",)


def _job_name(name: str) -> dict[str, str]:
    return {"name": name} if name else {}


def _lines(spec: JobSpec) -> Iterator[str]:
    about_files = _("what is in the working directory of each task")
    about_environment = _("the packages that it needs, installed once")
    about_inputs = _("data, here or hdfs:///…; each task gets its share")
    about_outputs = _("what is kept of the directory `from` when all has gone well")
    role = spec.roles[ROLE]
    yield _("# A job for howdah: `howdah run FILE` here, `howdah run --on yarn FILE` on the cluster.")
    yield _("# `howdah plan FILE` shows what would happen. All keys are in docs/spec.md, or `howdah schema`.")
    yield f"name: {_value(spec.name)}"
    yield _line(f"framework: {_value(spec.framework)}", _("which variables the tasks get; also tensorflow, jax, …"))
    yield ""
    yield "roles:"
    yield _line(f"  {ROLE}:", _("a kind of task; others, such as ps or evaluator, beside it"))
    yield f"    command: {_value(role.command)}"
    yield _line(f"    replicas: {role.replicas}", _("how many run together"))
    yield "    resources:"
    yield _line(f"      memory: {memory_text(role.resources.memory_mib)}", _("of each task; who uses more is killed"))
    yield _line(f"      vcores: {role.resources.vcores}")
    yield _line(f"      gpus: {role.resources.gpus}", _("whole GPUs of each task"))
    yield from _section("files", [f"- {_value(one)}" for one in spec.files], "- config.json", about_files)
    environment = spec.environment
    given = [f"{key}: {_value(getattr(environment, key))}" for key in environment.given]
    yield from _section("environment", given, "requirements: requirements.txt", about_environment)
    inputs = [{"path": one.path} for one in spec.inputs]
    yield from _section("inputs", [f"- {_value(one)}" for one in inputs], "- {path: data, to: data}", about_inputs)
    outputs = [{"path": one.path, "from": one.source} for one in spec.outputs]
    example = f"- {{path: {_value(f'models/{spec.name}')}, from: model, tasks: chief}}"
    yield from _section("outputs", [f"- {_value(one)}" for one in outputs], example, about_outputs)
    yield ""
    yield _line("# checkpoint: checkpoints", _("a directory that is kept: a restart resumes from it"))
    yield _line("# retries: 2", _("how often all begin again after a failure"))


def _section(name: str, given: list[str], example: str, comment: str) -> Iterator[str]:
    """Yield a section with the given values; without values, yield a comment that shows how it is written."""
    yield ""
    yield _line(f"{name}:" if given else f"# {name}:", comment)
    yield from (f"  {line}" for line in given) if given else (f"#   {example}",)


def _line(text: str, comment: str = "") -> str:
    return f"{text:<{_COLUMN}}# {comment}" if comment else text


def _value(value: object) -> str:
    """Return a value on one line, as YAML."""
    value = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1 << 20, sort_keys=False)
    return text.removesuffix("...\n").strip()
