"""Finds everything that is wrong with a job, all at once.

The rule: these checks need nothing but the job itself. Mistakes that only a file system or a cluster can tell (a
missing path, a closed queue) are found by the code that asks it.
"""

from __future__ import annotations

import dataclasses
import math
import posixpath
import re
from typing import Collection, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from howdah.errors import Mistake
from howdah.spec import containers, exec_limits, launchers, port_range, preflight, type_check, working_files
from howdah.spec.job import ALIASES, Input, JobSpec, Output, Resources, Role, Save
from howdah.spec.task import CHIEFS, chief

NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
# Without a user and password before the host, which no POST sends.
HTTP_ADDRESS = re.compile(r"https?://[^\s/?#@]+([/?#]\S*)?")
_WITH_USER = re.compile(r"https?://[^\s/?#]*@")
VALID = re.compile(r"tensorflow|torch|all|(marker|glob):.+")
# YARN's own rules for a node label and for a resource type.
LABEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,254}")
RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*(/[A-Za-z][A-Za-z0-9._-]*)?")
# The allowed values of fields that offer a choice, by record and field.
CHOICES = {
    "JobSpec.success": ("all", "any", "chief"),
    "Role.on_failure": ("fail", "ignore", "restart", "restart-role"),
    "Role.causes": ("user", "transient", "memory", "node", "preempted"),
    "Deadline.then": ("fail", "stop", "untrack"),
    "Role.on_stall": ("report", "restart", "fail", "ignore"),
    "Preemption.signal": ("URG", "USR1", "USR2", "TERM", "INT", "HUP", "CONT", "none"),
    "Input.share": ("split", "bytes", "all"),
    "Input.strategy": ("download", "placeholder", "stream"),
    "Output.strategy": ("upload", "stream"),
}
SHARE_OF_TASKS = re.compile(r"(100|[1-9]?[0-9](\.[0-9]{1,4})?)%")
INPUT_FORMATS = ("text", "whole", "csv", "jsonl", "sequencefile", "tfrecord", "parquet", "orc", "avro")
_OF_INPUT_FILES = ("to", "cache", "flat", "fewer_tasks")
_OF_INPUT_STREAMS = ("format", "options", "epochs", "shuffle", "window", "seed")
OUTPUT_FORMATS = ("text", "gzip", "sequencefile", "tfrecord", "parquet")
# A reader or writer of the user's own.
OWN_FORMAT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# One master holds them in memory, and each is a container that costs resources.
MAX_TASKS = 100_000
# What a cluster's messages can hold.
MAX_NUMBER = 2**31 - 1
_OWN_FIELDS = {
    "memory": "memory",
    "memory-mb": "memory",
    "vcores": "vcores",
    "cpu": "vcores",
    "yarn.io/gpu": "gpus",
    "gpu": "gpus",
}

_ANYWHERE = Input.to
MAX_NAMED = 10
"""The most valid names that a mistake lists; more names would hide the one that was probably meant."""
_Found = Iterator[Mistake]


def find_mistakes(
    job: JobSpec, frameworks: Collection[str] = (), origins: Optional[Mapping[str, str]] = None
) -> List[Mistake]:
    """Return all mistakes of `job`, in the spec's order; none when it can be planned. `frameworks` are the known ones
    (empty: any is allowed). `origins` gives the user's own words for places, such as `{"roles.worker.replicas":
    "--worker-num"}`; a place without its own takes those of the place it lies in. Values of a wrong type, possible in a
    job built in Python, are reported alone, because nothing else can be checked then."""
    found = list(type_check.mistakes(job, JobSpec))
    if not found:
        found = [*_roles(job), *_job(job, frameworks), *_files(job), *_data(job), *_variables(job)]
        found += [*preflight.mistakes(job), *exec_limits.mistakes(job), *containers.mistakes(job)]
        found += launchers.mistakes(job)
    return [mistake.with_origin(origins or {}) for mistake in found]


def has_chief(roles: Mapping[str, Role]) -> bool:
    """Return whether the job has a task that `chief` clearly means (`howdah.spec.task.chief`)."""
    return len(roles) == 1 or any(name in roles for name in CHIEFS)


def apply_alias(entry: Input) -> Input:
    """Return the input with the part after `#` in its paths as its `to`. If `to` is given as well, a `#` is part of a
    name."""
    pairs = _pairs(entry)
    alias = next((alias for _, alias in pairs if alias), "")
    if not alias:
        return entry
    paths = tuple(path for path, _ in pairs)
    return dataclasses.replace(entry, path=paths[0] if isinstance(entry.path, str) else paths, to=alias)


def _pairs(entry: Input) -> List[Tuple[str, str]]:
    """Return each path with the name it gets, "" if no name is given."""
    paths = (entry.path,) if isinstance(entry.path, str) else entry.path
    if entry.to != _ANYWHERE:
        return [(path, "") for path in paths]
    return [
        (path, alias) if mark and alias else (whole, "")
        for whole in paths
        for path, mark, alias in [whole.rpartition("#")]
    ]


def nearest(word: str, known: Collection[str]) -> Optional[str]:
    """Return the valid name that `word` was probably meant to be."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1)), None)


def _at_least(place: str, value: float, minimum: int, unit: str = "") -> _Found:
    if value < minimum or (isinstance(value, float) and math.isnan(value)):  # an int may be beyond every float
        yield Mistake(place, f"is {_shown(value)}{unit}, must be at least {minimum}{unit}")
    elif value > MAX_NUMBER:
        yield Mistake(place, f"is {_shown(value)}{unit}, must be at most {MAX_NUMBER}{unit}")


def _shown(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) or abs(value) < 10**18 else "a number of many digits"


def _one_of(place: str, value: str, allowed: Collection[str]) -> _Found:
    if value not in allowed:
        yield Mistake(place, f"is {value!r}, must be one of {', '.join(sorted(allowed))}", nearest(value, allowed))


def _roles(job: JobSpec) -> _Found:
    if not job.roles:
        yield Mistake("roles", "is empty, a job has at least one role")
    yield from _check_stages(job)
    for name, role in job.roles.items():
        if not NAME.fullmatch(name):
            rule = "a role's name is a small letter, then small letters, digits, - or _, 63 at most"
            yield Mistake(f"roles.{name}", f"is not a name: {rule}")
        yield from _role(f"roles.{name}", role)
        if not job.gang and (role.spares or role.min_replicas):
            key = "spares" if role.spares else "min_replicas"
            yield Mistake(f"roles.{name}.{key}", "is for tasks that start together; with `gang: false` each is alone")
    if job.roles and all(role.tracked is False for role in job.roles.values()):
        yield Mistake("roles", "none is tracked: the job would end at once. Set `tracked: true` on one")
    if job.task_count > MAX_TASKS:
        yield Mistake("roles", f"have {job.task_count} tasks together, at most {MAX_TASKS} are possible")


def _role(place: str, role: Role) -> _Found:
    yield from _command(f"{place}.command", role.command)
    yield from _at_least(f"{place}.replicas", role.replicas, 1)
    yield from _at_least(f"{place}.spares", role.spares, 0)
    if not 0 <= role.min_replicas <= role.replicas:
        yield Mistake(f"{place}.min_replicas", f"is {role.min_replicas}, must be 0 to {role.replicas} (replicas)")
    yield from _resources(f"{place}.resources", role.resources)
    yield from _environment(f"{place}.env", role.env)
    yield from _label(f"{place}.node_label", role.node_label)
    if role.on_failure:
        yield from _one_of(f"{place}.on_failure", role.on_failure, CHOICES["Role.on_failure"])
    yield from _at_least(f"{place}.restarts", role.restarts, 0)
    yield from _at_least(f"{place}.backoff", role.backoff_s, 0, " s")
    yield from _causes(f"{place}.causes", role.causes)
    yield from _ports(f"{place}.ports", role.ports)
    yield from _yields(f"{place}.yields", role.yields)
    yield from _at_least(f"{place}.deadline.within", role.deadline.within_s, 0, " s")
    yield from _one_of(f"{place}.deadline.then", role.deadline.then, CHOICES["Deadline.then"])
    yield from _one_of(f"{place}.preemption.signal", role.preemption.signal, CHOICES["Preemption.signal"])
    yield from _at_least(f"{place}.preemption.grace", role.preemption.grace_s, 0, " s")
    if role.on_stall:
        yield from _one_of(f"{place}.on_stall", role.on_stall, CHOICES["Role.on_stall"])


def _causes(place: str, causes: Mapping[str, str]) -> _Found:
    for sign, cause in causes.items():
        try:
            re.compile(sign)
        except re.error as error:
            yield Mistake(f"{place}.{sign}", f"is neither an exit status nor a regular expression: {error}")
        yield from _one_of(f"{place}.{sign}", cause, CHOICES["Role.causes"])


def _yields(place: str, yields: Mapping[str, str]) -> _Found:
    yield from _environment_names(place, yields)
    for name, words in yields.items():
        if not words.strip() or "\n" in words:
            yield Mistake(f"{place}.{name}", f"is {words!r}, must be the words before the value, on the same line")


def _check_stages(job: JobSpec) -> _Found:
    """Check that roles that wait for others name existing roles, and that no role waits for itself in a circle."""
    for name, role in job.roles.items():
        for number, other in enumerate((*role.after, *role.deadline.after)):
            key = f"after.{number}" if number < len(role.after) else f"deadline.after.{number - len(role.after)}"
            if other not in job.roles or other == name:
                yield _unknown_role(f"roles.{name}.{key}", other, job)
    waiting = {name: {other for other in role.after if other in job.roles} for name, role in job.roles.items()}
    while waiting:
        free = [name for name, others in waiting.items() if not others & waiting.keys()]
        if not free:
            yield Mistake(
                f"roles.{next(iter(waiting))}.after", f"is a circle: {', '.join(waiting)} wait for each other"
            )
            return
        waiting = {name: others for name, others in waiting.items() if name not in free}


def _command(place: str, command: Union[str, Tuple[str, ...]]) -> _Found:
    if not (command.strip() if isinstance(command, str) else command and command[0]):
        yield Mistake(place, "is empty: write what each task of the role runs")


def _resources(place: str, resources: Resources) -> _Found:
    yield from _at_least(f"{place}.memory", resources.memory_mib, 1, " MiB")
    yield from _at_least(f"{place}.vcores", resources.vcores, 1)
    yield from _at_least(f"{place}.gpus", resources.gpus, 0)
    yield from _at_least(f"{place}.growth", resources.growth, 0)
    for name, count in resources.named.items():
        own = _OWN_FIELDS.get(name.lower())
        if own:
            yield Mistake(f"{place}.named.{name}", f"has its own key: write `{own}`")
        elif not RESOURCE.fullmatch(name):
            yield Mistake(
                f"{place}.named.{name}", "is not a resource type: letters, digits, . _ - and one /, like yarn.io/fpga"
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
    if not SHARE_OF_TASKS.fullmatch(job.success):
        yield from _one_of("success", job.success, CHOICES["JobSpec.success"])
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
    for number, each in enumerate(job.notify):
        if each not in job.secrets and not HTTP_ADDRESS.fullmatch(each):
            problem = "must be an address, https://…, or the name of one of the job's secrets"
            if _WITH_USER.match(each):
                problem = "has a user or password before @, which is not sent: leave it out"
            yield Mistake(f"notify.{number}", problem)
    yield from _at_least("master.memory", job.master.memory_mib, 0, " MiB")
    yield from _at_least("master.vcores", job.master.vcores, 0)
    yield from _at_least("master.attempts", job.master.attempts, 0)
    yield from _label("master.node_label", job.master.node_label)
    yield from port_range.mistakes("port_range", job.port_range)
    yield from _checkpoint(job)
    yield from _tensorboard(job)
    for name, value in dataclasses.asdict(job.timeouts).items():
        yield from _at_least(f"timeouts.{name[:-2]}", value, 0, " s")
    given = job.environment.given
    if len(given) > 1:
        yield Mistake("environment", f"has {' and '.join(given)}, at most one of them is possible")


def _checkpoint(job: JobSpec) -> _Found:
    checkpoint = job.checkpoint
    if checkpoint.local:
        yield from _check_inside_workdir("checkpoint.local", checkpoint.local)
        if not checkpoint.path:
            yield Mistake("checkpoint.path", "is empty: write where the checkpoints are kept")
    yield from _no_switch("checkpoint.path", checkpoint.path)
    yield from _task_mistakes("checkpoint.tasks", checkpoint.tasks, job, ("chief", "all"))
    yield from _at_least("checkpoint.every", checkpoint.every_s, 1, " s")
    if checkpoint.valid and not VALID.fullmatch(checkpoint.valid):
        yield Mistake(
            "checkpoint.valid", f"is {checkpoint.valid!r}, must be tensorflow, torch, all, marker:NAME or glob:PATTERN"
        )


def _no_switch(place: str, path: str) -> _Found:
    if path.lower() in ("yes", "no", "true", "false", "on", "off"):
        yield Mistake(place, f"is {path!r}, must be the path of a directory: one of that name is ./{path}")


def _tensorboard(job: JobSpec) -> _Found:
    board = job.board
    yield from _no_switch("board.path", board.path)
    if board.local:
        yield from _check_inside_workdir("board.local", board.local)
    elif board.tasks:
        yield Mistake("board.tasks", f"is {board.tasks!r}, but no `local` directory is named that would be copied")
    if board.tasks:
        yield from _task_mistakes("board.tasks", board.tasks, job, ("chief",))
    yield from _at_least("board.every", board.every_s, 1, " s")
    if board.port and not 1024 <= board.port <= 65535:
        yield Mistake("board.port", f"is {board.port}, must be 0, or a port from 1024 to 65535")


def _task_mistakes(place: str, tasks: str, job: JobSpec, words: Tuple[str, ...]) -> _Found:
    role, _, index = tasks.partition(":")
    if tasks not in (*words, *job.roles) and not (role in job.roles and index.isdigit()):
        yield Mistake(place, f"is {tasks!r}, must be {', '.join(words)}, a role, or a task like worker:0")


def _label(place: str, label: str) -> _Found:
    if label and not LABEL.fullmatch(label):
        yield Mistake(place, f"is {label!r}, must be one label: letters, digits, - or _")


def _files(job: JobSpec) -> _Found:
    inputs = enumerate(job.inputs)
    yield from working_files.mistakes(
        job, {apply_alias(entry).to.split("/")[0]: f"inputs.{n}.to" for n, entry in inputs}
    )
    for number, directory in enumerate(job.directories):
        yield from _check_inside_workdir(f"directories.{number}", directory)


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
        for place, inner in (("checkpoint.path", job.checkpoint.path), ("board.path", job.board.path)):
            if path and f"{inner.rstrip('/')}/".startswith(f"{path}/"):
                yield Mistake(place, f"is {inner!r}, which lies inside outputs.{number}.path")
    yield from _printed_once(job)


def _printed_once(job: JobSpec) -> _Found:
    """Check that a task's standard output goes to one output only."""
    streams = [(number, output) for number, output in enumerate(job.outputs) if output.strategy == "stream"]
    for place, (number, output) in enumerate(streams):
        for other, earlier in streams[:place]:
            if _share_a_task(output, earlier, job):
                yield Mistake(
                    f"outputs.{number}.strategy",
                    f"is 'stream', as outputs.{other}.strategy is: what a task prints goes to one output. Divide them"
                    " by `tasks`",
                )


def _share_a_task(one: Output, other: Output, job: JobSpec) -> bool:
    first, second = (str(chief(job)) if each.tasks == "chief" and job.roles else each.tasks for each in (one, other))
    return "" in (first, second) or f"{first}:".startswith(f"{second}:") or f"{second}:".startswith(f"{first}:")


def _input(place: str, entry: Input, job: JobSpec) -> _Found:
    paths = [entry.path] if isinstance(entry.path, str) else entry.path
    if not paths or not all(path.strip() for path in paths):
        yield Mistake(f"{place}.path", "is empty: write where the data is")
    aliases = sorted({alias for _, alias in _pairs(entry) if alias})
    if len(aliases) > 1:
        yield Mistake(f"{place}.path", f"goes to {' and '.join(aliases)}: write an input for each")
    yield from _check_inside_workdir(f"{place}.to", apply_alias(entry).to)
    yield from _one_of(f"{place}.share", entry.share, CHOICES["Input.share"])
    yield from _one_of(f"{place}.strategy", entry.strategy, CHOICES["Input.strategy"])
    yield from _format(f"{place}.format", entry.format, INPUT_FORMATS)
    for name in ("epochs", "window", "seed"):
        yield from _at_least(f"{place}.{name}", getattr(entry, name), 0)
    if entry.chief is not None:
        yield from _at_least(f"{place}.chief", entry.chief, 0)
        if entry.share == "all":
            yield Mistake(f"{place}.chief", f"is {entry.chief}, but with share 'all' every task gets all files")
    for number, role in enumerate(entry.roles):
        if role not in job.roles:
            yield _unknown_role(f"{place}.roles.{number}", role, job)
    yield from _without_effect(place, entry, entry.strategy == "stream", _OF_INPUT_FILES, _OF_INPUT_STREAMS)


def _without_effect(
    place: str, entry: Union[Input, Output], streams: bool, of_files: Sequence[str], of_streams: Sequence[str]
) -> _Found:
    """Find keys that have no effect with this strategy: another strategy was probably meant."""
    defaults = {field.name: field.default for field in dataclasses.fields(entry)}
    for name in of_files if streams else of_streams:
        value = getattr(entry, name)
        if value and value != defaults[name]:
            rule = "has no effect on a stream" if streams else "has an effect with `strategy: stream` only"
            yield Mistake(f"{place}.{ALIASES.get(name, name)}", f"is {value!r}, which {rule}: leave it out")


def _format(place: str, name: str, known: Collection[str]) -> _Found:
    if not OWN_FORMAT.fullmatch(name):
        yield from _one_of(place, name, known)


def _output(place: str, output: Output, job: JobSpec) -> _Found:
    if not output.path.strip():
        yield Mistake(f"{place}.path", "is empty: write where the output goes")
    if posixpath.normpath(output.source) != "." or not output.source:
        yield from _check_inside_workdir(f"{place}.from", output.source)
    elif output.save != Save():
        yield Mistake(f"{place}.save", "needs a directory of its own in `from`: not '.', the whole working directory")
    yield from _one_of(f"{place}.strategy", output.strategy, CHOICES["Output.strategy"])
    yield from _format(f"{place}.format", output.format, OUTPUT_FORMATS)
    yield from _without_effect(
        place, output, output.strategy == "stream", ("source", "optional"), ("format", "options")
    )
    if output.strategy == "stream" and output.save != Save():
        yield Mistake(f"{place}.save", "is for files: what a stream has printed so far can't be copied")
    yield from _at_least(f"{place}.save.every", output.save.every_s, 0, " s")
    yield from _at_least(f"{place}.save.keep", output.save.keep, 0)
    yield from _at_least(f"{place}.save.limit", output.save.limit_s, 1, " s")
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
        place, f"is {role!r}, which is not a role of this job ({', '.join(job.roles)})", nearest(role, job.roles)
    )


def _check_inside_workdir(place: str, path: str) -> _Found:
    clean = posixpath.normpath(path) if path else ""
    if clean in ("", ".", "..") or clean.startswith(("/", "../")):
        yield Mistake(place, f"is {path!r}, must be a directory inside the working directory")


def _variables(job: JobSpec) -> _Found:
    yield from _environment("env", job.env)
    yield from _environment_names("extend", job.extend)
    yield from _environment_names("secrets", job.secrets)
    for name, reference in job.secrets.items():
        if not SECRET.fullmatch(reference):
            # The value isn't shown: people write the secret itself here.
            yield Mistake(f"secrets.{name}", "must be a reference: env:NAME or file:/path")
        for place, env in [("env", job.env), *((f"roles.{role}.env", job.roles[role].env) for role in job.roles)]:
            if name in env:
                yield Mistake(f"secrets.{name}", f"is in {place} too: keep one of them")


def added_entries(name: str, value: str) -> str | None:
    """Return the entries that a list such as `/opt/bin:$PATH` adds to the variable `name` itself, in the form of
    `extend`; None if the list does not refer to the variable."""
    own = rf"\$(?:{re.escape(name)}\b|{{{re.escape(name)}\b(?:[^{{}}]|{{[^{{}}]*}})*}})"
    if not re.search(own, value):
        return None
    before, *behind = ([part for part in text.split(":") if part] for text in re.split(own, value))
    last = [part for parts in behind for part in parts]
    return ":".join([*before, f"${name}", *last] if before else last)


def _environment(place: str, env: Mapping[str, str]) -> _Found:
    yield from _environment_names(place, env)
    for name, value in env.items():
        if (added := added_entries(name, value)) is not None:
            yield Mistake(
                f"{place}.{name}", f"has ${name}, which is text here: put {added} into `extend`, which adds it"
            )


def _environment_names(place: str, env: Mapping[str, str]) -> _Found:
    for name in env:
        if not VARIABLE.fullmatch(name):
            yield Mistake(f"{place}.{name}", "is not a variable name: letters, digits and _, no digit first")
