"""Everything that is wrong with a job, all at once.

The rule: these checks need nothing but the job itself. What only a file system or a cluster can tell (a path that
isn't there, a queue that is closed) is found where that is asked.
"""

from __future__ import annotations

import dataclasses
import math
import posixpath
import re
import typing
from difflib import get_close_matches
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from howdah.errors import Mistake
from howdah.spec.job import Input, JobSpec, Output, Resources, Role
from howdah.spec.world import CHIEFS

NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
# YARN's own rules for a node label and for a resource type.
LABEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,254}")
RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*(/[A-Za-z][A-Za-z0-9._-]*)?")
SUCCESS = ("all", "any", "chief")
ON_FAILURE = ("fail", "ignore")
SHARE = ("split", "all")
# One master holds them in memory, and each is a container that somebody pays for.
MOST_TASKS = 100_000
# What a cluster's messages can hold.
LARGEST = 2**31 - 1
_OWN_FIELDS = {
    "memory": "memory",
    "memory-mb": "memory",
    "vcores": "vcores",
    "cpu": "vcores",
    "yarn.io/gpu": "gpus",
    "gpu": "gpus",
}

_Found = Iterator[Mistake]


def mistakes(
    job: JobSpec, frameworks: Collection[str] = (), origins: Optional[Mapping[str, str]] = None
) -> List[Mistake]:
    """All that is wrong with `job`, in the spec's order; empty when it can be planned.

    `frameworks` are the known ones (empty: any will do). `origins` gives the user's own words for places, such as
    `{"roles.worker.replicas": "--worker-num"}`; a place without its own takes that of the place it lies in.
    Values of a wrong type, possible in a job built in Python, are reported alone: nothing else can be said then.
    """
    found = list(_types(job, JobSpec, ""))
    if not found:
        found = [*_roles(job), *_job(job, frameworks), *_files(job), *_data(job), *_variables(job)]
    return [dataclasses.replace(mistake, origin=origin_of(mistake.place, origins or {})) for mistake in found]


def has_chief(roles: Mapping[str, Role]) -> bool:
    """Whether it is plain whom `chief` means (`howdah.spec.world.chief`)."""
    return len(roles) == 1 or any(name in roles for name in CHIEFS)


def file_name(entry: str) -> str:
    """The name in the working directory of an entry of `files` or `archives`: after `#`, else the path's own."""
    path, _, name = entry.partition("#")
    return name or posixpath.basename(path.rstrip("/"))


def nearest(word: str, known: Collection[str]) -> Optional[str]:
    """The valid name that `word` was probably meant to be."""
    return next(iter(get_close_matches(word, list(known), 1)), None)


def origin_of(place: str, origins: Mapping[str, str]) -> Optional[str]:
    """Where the user wrote `place`, or what it lies in."""
    while place:
        if place in origins:
            return origins[place]
        place = place.rpartition(".")[0]
    return None


def _at_least(place: str, value: float, least: int, unit: str = "") -> _Found:
    if math.isnan(value) or value < least:
        yield Mistake(place, f"is {value:g}{unit}, must be at least {least}{unit}")
    elif value > LARGEST:
        yield Mistake(place, f"is {value:g}{unit}, must be at most {LARGEST}{unit}")


def _one_of(place: str, value: str, allowed: Collection[str]) -> _Found:
    if value not in allowed:
        yield Mistake(place, f"is {value!r}, must be one of {', '.join(sorted(allowed))}", nearest(value, allowed))


def _roles(job: JobSpec) -> _Found:
    if not job.roles:
        yield Mistake("roles", "is empty, a job has at least one role")
    for name, role in job.roles.items():
        if not NAME.fullmatch(name):
            rule = "a role's name is a small letter, then small letters, digits, - or _, 63 at most"
            yield Mistake(f"roles.{name}", f"is no name: {rule}")
        yield from _role(f"roles.{name}", role)
    if job.roles and all(role.tracked is False for role in job.roles.values()):
        yield Mistake("roles", "none is tracked: the job would end at once. Set `tracked: true` on one")
    if job.task_count > MOST_TASKS:
        yield Mistake("roles", f"have {job.task_count} tasks together, at most {MOST_TASKS} are possible")


def _role(place: str, role: Role) -> _Found:
    yield from _command(f"{place}.command", role.command)
    yield from _at_least(f"{place}.replicas", role.replicas, 1)
    yield from _resources(f"{place}.resources", role.resources)
    yield from _environment_names(f"{place}.env", role.env)
    yield from _label(f"{place}.node_label", role.node_label)
    if role.on_failure:
        yield from _one_of(f"{place}.on_failure", role.on_failure, ON_FAILURE)
    yield from _ports(f"{place}.ports", role.ports)


def _command(place: str, command: Union[str, Tuple[str, ...]]) -> _Found:
    if not (command.strip() if isinstance(command, str) else command and command[0]):
        yield Mistake(place, "is empty: write what each task of the role runs")
    if any("\0" in part for part in ([command] if isinstance(command, str) else command)):
        yield Mistake(place, "contains a NUL byte, which no program can be given")


def _resources(place: str, resources: Resources) -> _Found:
    yield from _at_least(f"{place}.memory", resources.memory_mib, 1, " MiB")
    yield from _at_least(f"{place}.vcores", resources.vcores, 1)
    yield from _at_least(f"{place}.gpus", resources.gpus, 0)
    for name, count in resources.named.items():
        own = _OWN_FIELDS.get(name.lower())
        if own:
            yield Mistake(f"{place}.named.{name}", f"has its own key: write `{own}`")
        elif not RESOURCE.fullmatch(name):
            yield Mistake(
                f"{place}.named.{name}", "is no resource type: letters, digits, . _ - and one /, like yarn.io/fpga"
            )
        yield from _at_least(f"{place}.named.{name}", count, 0)


def _ports(place: str, ports: Sequence[str]) -> _Found:
    variables = [name.upper().replace("-", "_") for name in ports]
    for number, name in enumerate(ports):
        if not NAME.fullmatch(name):
            yield Mistake(f"{place}.{number}", f"is {name!r}: a port's name is like a role's, small letters first")
        elif name == "main":
            yield Mistake(f"{place}.{number}", "is 'main', which every task has anyway")
        elif variables[number] in variables[:number]:
            yield Mistake(f"{place}.{number}", f"is {name!r}, but HOWDAH_PORT_{variables[number]} is taken by another")


def _job(job: JobSpec, frameworks: Collection[str]) -> _Found:
    if not job.name.strip() or not job.name.isprintable() or len(job.name) > 200:
        yield Mistake("name", f"is {job.name[:40]!r}, must be one line of 1 to 200 characters")
    if frameworks:
        yield from _one_of("framework", job.framework, frameworks)
    yield from _one_of("success", job.success, SUCCESS)
    if job.success == "chief" and not has_chief(job.roles):
        yield Mistake("success", f"is 'chief', but the roles {', '.join(job.roles)} have no chief, master or worker")
    yield from _at_least("retries", job.retries, 0)
    if any(letter.isspace() for letter in job.queue):
        yield Mistake("queue", f"is {job.queue!r}, which no queue can be called")
    if job.priority is not None:
        yield from _at_least("priority", job.priority, 0)
    yield from _label("node_label", job.node_label)
    for number, tag in enumerate(job.tags):
        if not tag.strip() or "," in tag or not tag.isascii() or len(tag) > 100:
            yield Mistake(f"tags.{number}", f"is {tag!r}, must be 1 to 100 ASCII characters without a comma")
    for name, value in dataclasses.asdict(job.timeouts).items():
        yield from _at_least(f"timeouts.{name[:-2]}", value, 0, " s")
    given = [name for name, value in dataclasses.asdict(job.environment).items() if value]
    if len(given) > 1:
        yield Mistake("environment", f"has {' and '.join(given)}, at most one of them is possible")


def _label(place: str, label: str) -> _Found:
    if label and not LABEL.fullmatch(label):
        yield Mistake(place, f"is {label!r}, must be one label: letters, digits, - or _")


def _files(job: JobSpec) -> _Found:
    entries = [(f"files.{number}", entry) for number, entry in enumerate(job.files)]
    entries += [(f"archives.{number}", entry) for number, entry in enumerate(job.archives)]
    owners: Dict[str, str] = {entry.to.split("/")[0]: f"inputs.{n}.to" for n, entry in enumerate(job.inputs)}
    for place, entry in entries:
        name = file_name(entry)
        if not entry.partition("#")[0].strip() or name in ("", ".", "..") or "/" in name:
            yield Mistake(place, f"is {entry!r}, must be a path, or path#name with a plain name")
        elif name in owners:
            yield Mistake(
                place, f"would be {name!r} in the working directory, as {owners[name]} is: rename it with #name"
            )
        owners.setdefault(name, place)


def _data(job: JobSpec) -> _Found:
    for number, entry in enumerate(job.inputs):
        yield from _input(f"inputs.{number}", entry, job)
    for number, output in enumerate(job.outputs):
        yield from _output(f"outputs.{number}", output, job)
    paths = [output.path.rstrip("/") for output in job.outputs]
    for number, path in enumerate(paths):
        for other in range(len(paths)):
            if other < number and path == paths[other]:
                yield Mistake(f"outputs.{number}.path", f"is {path!r}, as outputs.{other}.path is")
            elif path and path.startswith(paths[other] + "/") and paths[other]:
                yield Mistake(f"outputs.{number}.path", f"is {path!r}, which lies inside outputs.{other}.path")


def _input(place: str, entry: Input, job: JobSpec) -> _Found:
    paths = [entry.path] if isinstance(entry.path, str) else entry.path
    if not paths or not all(path.strip() for path in paths):
        yield Mistake(f"{place}.path", "is empty: write where the data is")
    yield from _inside(f"{place}.to", entry.to)
    yield from _one_of(f"{place}.share", entry.share, SHARE)
    for number, role in enumerate(entry.roles):
        if role not in job.roles:
            yield _unknown_role(f"{place}.roles.{number}", role, job)


def _output(place: str, output: Output, job: JobSpec) -> _Found:
    if not output.path.strip():
        yield Mistake(f"{place}.path", "is empty: write where the output goes")
    yield from _inside(f"{place}.from", output.source)
    role, _, index = output.tasks.rpartition(":") if ":" in output.tasks else (output.tasks, "", "0")
    if output.tasks in ("", "chief") and (not output.tasks or has_chief(job.roles)):
        return
    if role not in job.roles:
        yield _unknown_role(f"{place}.tasks", output.tasks, job)
    elif job.roles[role].replicas > 0 and (not index.isdigit() or int(index) >= job.roles[role].replicas):
        last = job.roles[role].replicas - 1
        yield Mistake(f"{place}.tasks", f"is {output.tasks!r}, the tasks of {role} are {role}:0 to {role}:{last}")


def _unknown_role(place: str, role: str, job: JobSpec) -> Mistake:
    return Mistake(
        place, f"is {role!r}, which is no role of this job ({', '.join(job.roles)})", nearest(role, job.roles)
    )


def _inside(place: str, path: str) -> _Found:
    clean = posixpath.normpath(path) if path else ""
    if clean in ("", ".", "..") or clean.startswith(("/", "../")):
        yield Mistake(place, f"is {path!r}, must be a directory inside the working directory")


def _variables(job: JobSpec) -> _Found:
    yield from _environment_names("env", job.env)
    yield from _environment_names("secrets", job.secrets)
    for name, reference in job.secrets.items():
        if not SECRET.fullmatch(reference):
            # The value isn't shown: people write the secret itself here.
            yield Mistake(f"secrets.{name}", "must be a reference: env:NAME or file:/path")
        for place, env in [("env", job.env), *((f"roles.{role}.env", job.roles[role].env) for role in job.roles)]:
            if name in env:
                yield Mistake(f"secrets.{name}", f"is in {place} too: keep one of them")


def _environment_names(place: str, env: Mapping[str, str]) -> _Found:
    for name, value in env.items():
        if not VARIABLE.fullmatch(name):
            yield Mistake(f"{place}.{name}", "is no variable name: letters, digits and _, no digit first")
        if "\0" in value:
            yield Mistake(f"{place}.{name}", "contains a NUL byte, which no program can be given")


_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _types(value: Any, kind: Any, place: str) -> _Found:
    """Where `value` is not what `kind`, a declared type of the spec, says."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:
        yield from _union_types(value, arguments, place)
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, kind):
        for name, hint in typing.get_type_hints(kind).items():
            if typing.get_origin(hint) is not typing.ClassVar:
                yield from _types(getattr(value, name), hint, f"{place}.{name}" if place else name)
    elif origin is tuple and isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from _types(item, arguments[0], f"{place}.{number}")
    elif arguments and origin is not tuple and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _types(item, arguments[1], f"{place}.{key}")
    elif not _plain(value, kind):
        wanted = "a list" if origin is tuple else "a mapping" if arguments else _WORDS.get(kind, f"a {kind.__name__}")
        yield Mistake(place, f"is {value!r}, must be {wanted}")


def _union_types(value: Any, kinds: Sequence[Any], place: str) -> _Found:
    """Optional[X], or text or a list."""
    if not (value is None and type(None) in kinds):
        listed = isinstance(value, (tuple, list))
        fit = next((kind for kind in kinds if (typing.get_origin(kind) is tuple) == listed), kinds[0])
        yield from _types(value, fit, place)


def _plain(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is kind or (kind is str and isinstance(value, str))
