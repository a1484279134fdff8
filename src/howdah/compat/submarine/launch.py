"""Makes the commands of the roles under either runtime: with their placeholders filled in, TensorBoard, and links."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace

from howdah.compat.submarine import option_values
from howdah.compat.submarine.options import OF_ROLE, ROLES, SubmarineOptions, kind_of_task
from howdah.compat.submarine.placeholders import JOBS, PATHS, default_checkpoint_path, fill_in, is_plain, keeps_whole
from howdah.spec import Board, JobSpec, Role
from howdah.spec.values import dataclass

BOARD, _TASK = "tensorboard", "tensorboard-0"
_BOARD_SIZE = "memory=4G,vcores=1"
SAVED_MODEL_PATH, CHECKPOINT_PATH = "Saved Model Path", "Checkpoint Path"
"""The labels of the links with these paths."""
_LABELS = dict(zip(PATHS, ("Input Path", SAVED_MODEL_PATH, CHECKPOINT_PATH), strict=True))


@dataclass(frozen=True)
class Commands:
    """The commands and resources of each kind of task."""

    counts: Mapping[str, int]
    """The number of tasks of each kind."""
    roles: Mapping[str, Role]
    """The role of each kind of task."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """The paths that replaced the placeholders."""
    board: str = ""
    """The directory that TensorBoard shows."""


def commands(options: SubmarineOptions, home: Callable[[], str]) -> Commands:
    """Return the commands and resources of each kind of task; mistakes are added to `options`."""
    counts = {role: options.number(option, 1 if role == "worker" else 0) for role, option in ROLES.items()}
    for role in _unsupported_roles(options):
        counts[role] = 0
    paths = {name: options.text(name) for name in PATHS if options.text(name)}
    if counts["ps"] and counts["worker"] <= 1:
        options.wrong(
            "num_workers", f"is {counts['worker']}, but there are servers: parameter servers want two workers"
        )
    if not any(counts.values()) and not options.given(BOARD):
        options.wrong("num_workers", "is 0, and no --tensorboard is asked for: there is nothing to run")
    default = default_checkpoint_path(options.text("name")) if counts["worker"] else JOBS

    def path(name: str) -> str:
        if name not in paths and name != "input_path":
            paths[name] = path("checkpoint_path") if name == "saved_model_path" else f"{home().rstrip('/')}/{default}"
        return paths.get(name, "")

    roles = {role: _role(options, role, path) for role, count in counts.items() if count}
    if counts["worker"]:  # `job show` prints them
        path("checkpoint_path")
        path("saved_model_path")
    options.notes += _without_effect(options, counts)
    if not options.given("legacy"):
        options.notes += _kept_whole(options, roles)
    board = path("checkpoint_path") if options.given(BOARD) else ""
    return Commands(counts, roles, paths, board)


def _unsupported_roles(options: SubmarineOptions) -> Iterator[str]:
    """Yield the kinds of task that the framework does not have; each option that asks for one is a mistake."""
    framework = options.text("framework", "tensorflow").lower()
    kinds = {"ps": framework == "pytorch", "scheduler": framework != "mxnet"}
    reasons = {
        "ps": "is not for PyTorch, whose workers meet without servers: leave it out",
        "scheduler": "is for --framework mxnet alone: leave it out",
    }
    for role in (role for role, foreign in kinds.items() if foreign):
        given = [option for option in options.of_role(role) if option != ROLES[role] or options.text(option) != "0"]
        for option in given:
            options.wrong(option, reasons[role])
        if given:
            yield role


def _without_effect(options: SubmarineOptions, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each option of a kind of task that the job does not have."""
    for role, count in counts.items():
        if not count:
            idle = [option for option in options.of_role(role) if option != ROLES[role]]
            yield from (f"{options.where(one)}: has no effect, for there are no such tasks" for one in idle)
    if not options.given(BOARD):
        idle = [option for option in (f"{BOARD}_resources", f"{BOARD}_docker_image") if options.given(option)]
        yield from (f"{options.where(one)}: has no effect without --tensorboard" for one in idle)


def _kept_whole(options: SubmarineOptions, roles: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each path that a shell would have split or executed when Submarine wrote it into a
    command."""
    for name in PATHS:
        path, where = options.text(name), options.where(name)
        lines = (options.text(f"{role}_launch_cmd") for role in roles)
        used = any(f"%{name}%" in line and keeps_whole(line) for line in lines)
        if path and used and not is_plain(path):
            yield f"{where}: {path!r} is one word; to Submarine it was text of the command, as it is with --legacy"


def _role(options: SubmarineOptions, role: str, path: Callable[[str], str]) -> Role:
    for what in ("resources", "launch_cmd"):
        if not options.text(f"{role}_{what}").strip():
            options.absent(f"{role}_{what}", f", but there are tasks of that kind (--{ROLES[role]})")
    line = options.text(f"{role}_launch_cmd")
    if "%input_path%" in line and not options.given("input_path"):
        options.absent("input_path", f", but %input_path% in --{role}_launch_cmd stands for it")
    command = fill_in(line, path, as_text=options.given("legacy") or not keeps_whole(line))
    size = option_values.resources(options, f"{role}_resources")
    return Role(command, resources=size, image=options.text(f"{role}_docker_image"))


def with_board(options: SubmarineOptions, job: JobSpec, commands: Commands) -> JobSpec:
    """Add TensorBoard beside the tasks, or as the job's only task. With an image, with --legacy, or if a quicklink
    leads to it, it is a task that runs the image's own TensorBoard."""
    if not commands.board:
        return job
    image = options.text("tensorboard_docker_image") or options.text("docker_image")
    linked = any(_TASK in text for text in options.get_list("quicklink"))
    if image or linked or options.given("legacy"):
        return _with_image_tensorboard(options, job, commands)
    if job.roles:
        if options.given(f"{BOARD}_resources"):
            where = options.where(f"{BOARD}_resources")
            options.notes.append(f"{where}: has no effect, TensorBoard beside a job takes 1 GiB")
        return replace(job, board=Board(commands.board, show=True))
    size = option_values.resources(options, "tensorboard_resources", _BOARD_SIZE)
    role = Role('tensorboard --logdir "$HOWDAH_BOARD_DIR"', resources=size)
    return replace(job, roles={BOARD: role}, framework="board", board=Board(commands.board))


def _with_image_tensorboard(options: SubmarineOptions, job: JobSpec, commands: Commands) -> JobSpec:
    line = f'exec tensorboard --host 0.0.0.0 --port "$HOWDAH_PORT" --logdir {shlex.quote(commands.board)}'
    size = option_values.resources(options, "tensorboard_resources", _BOARD_SIZE)
    role = Role(line, resources=size, image=options.text("tensorboard_docker_image"), env={"LC_ALL": "C"})
    alone = not job.roles
    role = replace(role, tracked=alone, on_failure="fail" if alone else "ignore")
    return replace(job, roles={**job.roles, BOARD: role})


def links(options: SubmarineOptions, job: JobSpec, commands: Commands) -> dict[str, str]:
    """Return the quicklinks, TensorBoard's link, and the paths that `job show` prints."""
    found = {label: commands.paths[name] for name, label in _LABELS.items() if commands.paths.get(name)}
    if BOARD in job.roles and job.framework != "board":
        found["Tensorboard"] = f"http://{{{BOARD}:0}}:{{{BOARD}:0:main}}"
    tasks = {}
    for name, role in job.roles.items():
        tasks.update({f"{name}:{index}": f"{name}:{index}" for index in range(role.replicas)})
    if "master" not in job.roles and "worker" in job.roles:  # TonY's first worker
        tasks = {"master:0": "worker:0", **tasks}
    for text in options.get_list("quicklink"):
        label, address = option_values.quicklink(options, text, tasks)
        for known, task in tasks.items():
            address = address.replace(f"{{{known}}}", f"{{{task}}}")
        if label in found:
            options.wrong("quicklink", f"is {text!r}, but another link is called {label!r}, too: give it another label")
        elif label:
            found[label] = address
    return found


def origins(options: SubmarineOptions, job: JobSpec) -> dict[str, str]:
    """Return the option behind each place of the spec."""
    found = {name: options.where(name) for name in ("name", "framework", "queue", "env")}
    found |= {"files": options.where("localization"), "inputs": options.where("localization")}
    found |= {"environment": options.where("docker_image"), "links": options.where("quicklink")}
    places = dict(zip(OF_ROLE, ("resources", "command", "image"), strict=True))
    for name in job.roles:
        kind = kind_of_task(name)
        found |= {f"roles.{name}.{place}": options.where(f"{kind}_{what}") for what, place in places.items()}
        if kind in ROLES:
            found[f"roles.{name}.replicas"] = options.where(ROLES[kind])
    return found
