"""The output of `howdah plan`, on one screen: the resources, the targets of files, and the files that would be
uploaded."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from howdah.cli.i18n import _, translate_stored
from howdah.cli.terminal import columns
from howdah.errors import HowdahError
from howdah.spec import JobSpec, Plan, StagedFile, StagedInput, StagedJob, redaction, uris
from howdah.spec.codec import encode
from howdah.spec.units import format_memory
from howdah.spec.working_files import packed_file
from howdah.storage.factory import filesystem

ROLE_COLUMNS = ("Role", "Tasks", "Memory", "vcores", "GPUs", "Command")
MAX_SHOWN = 6
MAX_CHECKED = 500
"""The most files for which the plan checks whether they have been uploaded already."""
MAX_COMMAND = 100


def plan_lines(plan: Plan, conf_dir: str) -> Iterator[str]:
    """Yield the lines of a plan; `conf_dir` is the Hadoop configuration by which its file systems are reached."""
    staged, job = plan.job, plan.job.job
    queue = _(", queue {queue}", queue=job.queue) if job.queue else ""
    yield _("{name}: {framework} on {engine}", name=job.name, framework=job.framework, engine=plan.engine) + queue
    yield from (f"  {line}" for line in _roles(plan))
    yield f"  {_total(plan)}"
    for heading, lines in (
        (_("files"), _files(staged.files)),
        (_("inputs"), list(map(_input, staged.inputs))),
        (_("outputs"), [_output(number, job) for number in range(len(job.outputs))]),
        (_("kept"), _kept_directories(job)),
        (_("environment"), _environment(staged)),
        (_("to upload"), list(_uploads(staged, conf_dir))),
        (_("options of {engine}", engine=plan.engine), _engine_options(plan)),
        (_("settings"), _changed_settings(staged)),
        (_("start"), [translate_stored(plan.request["expected"])] if "expected" in plan.request else []),
    ):
        yield from _section(heading, lines)
    yield _("all of it: howdah plan --json")


def _section(heading: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines[:MAX_SHOWN]):
        yield _("{heading}: {line}", heading=heading, line=line) if number == 0 else f"  {line}"
    if len(lines) > MAX_SHOWN:
        yield "  " + _("… and {count} more", count=len(lines) - MAX_SHOWN)


def _roles(plan: Plan) -> Iterator[str]:
    shown: Mapping[str, Any] = redaction.record(encode(plan.job.job))
    rows = []
    for name, role in plan.job.job.roles.items():
        command = shown["roles"][name].get("command", "")
        text = command if isinstance(command, str) else shlex.join(command)
        first, *more = text.strip().splitlines() or [""]
        cut = first[:MAX_COMMAND] + ("…" if more or len(first) > MAX_COMMAND else "")
        resources = role.resources
        sizes = (format_memory(resources.memory_mib), str(resources.vcores), str(resources.gpus))
        rows.append((name, str(role.replicas), *sizes, cut))
    return columns([tuple(map(_, ROLE_COLUMNS)), *rows])


def _total(plan: Plan) -> str:
    roles = [(role.replicas + role.spares, role.resources) for role in plan.job.job.roles.values()]
    memory = format_memory(sum(count * one.memory_mib for count, one in roles))
    vcores, gpus = (sum(count * getattr(one, what) for count, one in roles) for what in ("vcores", "gpus"))
    tasks = sum(count for count, _ in roles)
    text = _(
        "in all {tasks} containers: {memory}, {vcores} vcores, {gpus} GPUs",
        tasks=tasks,
        memory=memory,
        vcores=vcores,
        gpus=gpus,
    )
    master = plan.request.get("master")
    if isinstance(master, Mapping):
        size = (format_memory(master["memory_mib"]), master["vcores"])
        text += _("; the master: {memory}, {vcores} vcores", memory=size[0], vcores=size[1])
    machine = plan.request.get("machine")
    if isinstance(machine, Mapping):
        has = {what: machine[what]["of"] for what in ("memory", "vcores", "GPUs")}
        text += _(
            "; this machine has {memory}, {vcores} vcores, {gpus} GPUs",
            memory=format_memory(has["memory"]),
            vcores=has["vcores"],
            gpus=has["GPUs"],
        )
    return text


def _files(files: Sequence[StagedFile]) -> list[str]:
    sizes: dict[tuple[str, tuple[str, ...]], int] = {}  # a large directory comes in several archives
    for file in files:
        shown = (_shown_name(file), file.roles)
        sizes[shown] = sizes.get(shown, 0) + file.size
    return [
        f"{name}  {_size(size)}" + (f"  ({', '.join(roles)})" if roles else "") for (name, roles), size in sizes.items()
    ]


def _shown_name(file: StagedFile) -> str:
    if file.kind == "file":
        return file.name
    return packed_file(file.name) or f"{file.into or '.'}/" if file.kind == "spread" else f"{file.name}/"


def _input(entry: StagedInput) -> str:
    count = _count(len(entry.files), sum(file.size for file in entry.files))
    where = _common_parent([entry.uploads.get(file.uri, file.uri) for file in entry.files])
    roles = ", ".join(entry.roles) or _("every role with data")
    shares = {"all": _("all to each of {roles}", roles=roles)}
    share = shares.get(entry.share, _("shared among {roles}", roles=roles))
    return _(
        "{files}, from {place} to {name}, {share}",
        files=count,
        place=where,
        name=entry.to,
        share=share,
    )


def _common_parent(places: Sequence[str]) -> str:
    if not places:
        return "-"
    parents = {uris.parent(one) if uris.has_scheme(one) else one.rpartition("/")[0] for one in places}
    first = min(parents, key=len)
    return _display_uri(first) if len(parents) == 1 else f"{_display_uri(first)}, …"


def _display_uri(uri: str) -> str:
    return uris.path(uri) if uris.has_scheme(uri) and uris.split(uri)[0] == "file" else uri


def _output(number: int, job: JobSpec) -> str:
    output = job.outputs[number]
    of = output.tasks or _("every task")
    what = _("what {tasks} prints", tasks=of) if output.strategy == "stream" else f"{output.source} ({of})"
    return f"{what} → {_display_uri(output.path)}" + (_(", replacing what is there") if output.overwrite else "")


def _kept_directories(job: JobSpec) -> list[str]:
    found = []
    if job.checkpoint.path:
        found.append(_("checkpoints in {place}", place=_display_uri(job.checkpoint.path)))
    if job.board.path:
        found.append(_("event files in {place}", place=_display_uri(job.board.path)))
    return found


def _environment(staged: StagedJob) -> list[str]:
    given = staged.job.environment
    chosen = [getattr(given, key) for key in given.given]
    named = chosen[0] if chosen else staged.settings.get("environment", "")
    found = (
        [_("{name}, first on PATH: {place}", name=named, place=staged.program_path[0])] if staged.program_path else []
    )
    return [*found, *([_("image {image}", image=given.image)] if given.image else [])]


def _uploads(staged: StagedJob, conf_dir: str) -> Iterator[str]:
    """Yield the files that must still be uploaded to the place from which containers get them."""
    wanted = {
        file.uri: (file.name, file.size) for file in (*staged.files, *staged.runtime, *staged.page) if file.source
    }
    for entry in staged.inputs:
        sizes = {file.uri: (file.name, file.size) for file in entry.files}
        wanted.update({uri: sizes[uri] for uri in entry.uploads})
    missing = (
        {uri: one for uri, one in wanted.items() if not _exists(uri, conf_dir)}
        if len(wanted) <= MAX_CHECKED
        else wanted
    )
    if not wanted:
        return
    if not missing:
        yield _("nothing: all {count} files are there already", count=len(wanted))
        return
    size, there = sum(size for _, size in missing.values()), len(wanted) - len(missing)
    place = _display_uri(uris.join(staged.home, "cache"))
    kept = _("; {count} are there already", count=there) if there else ""
    yield _("{files}, to {place}", files=_count(len(missing), size), place=place) + kept
    for name, bytes_ in sorted(missing.values(), key=lambda one: -one[1]):
        yield f"{name}  {_size(bytes_)}"


def _exists(uri: str, conf_dir: str) -> bool:
    with contextlib.suppress(HowdahError):
        return filesystem(uri, conf_dir).exists(uri)
    return False


def _engine_options(plan: Plan) -> list[str]:
    options = redaction.record(encode(plan.job.job)).get("engines", {}).get(plan.engine, {})
    return [f"{name} = {value if isinstance(value, str) else ', '.join(value)}" for name, value in options.items()]


def _changed_settings(staged: StagedJob) -> list[str]:
    """Return the settings that are not defaults, with their sources."""
    return [
        f"{name} = {value} ({staged.sources[name]})"
        for name, value in staged.settings.items()
        if value and staged.sources.get(name, "default") != "default"
    ]


def _size(size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _count(files: int, size: int) -> str:
    one = _("1 file") if files == 1 else _("{count} files", count=files)
    return f"{one}, {_size(size)}"
