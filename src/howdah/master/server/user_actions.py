"""User actions on a running job (cancel, snapshot, stacks, tensorboard), for the page and for signed client calls."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from howdah.errors import Conflict, HowdahError, InvalidRequest, JobEnded, NotFound, NotReady
from howdah.eventfiles import locations
from howdah.master.health import hang_detection, stack_dumps
from howdah.master.snapshots import snapshot_policy
from howdah.master.tensorboard import IDLE_S
from howdah.spec import TaskId
from howdah.spec.events import CancelRequested, SaveRequested, StacksTaken

MAX_IDLE_S = 86400

if TYPE_CHECKING:
    from howdah.master.server.server import MasterServer


class UserAction(NamedTuple):
    """An action that a user may ask of a running job."""

    possible: Callable[[MasterServer], bool]
    """Return whether the action is possible now."""
    execute: Callable[[MasterServer, Mapping[str, Any], str], Awaitable[Any]]
    """Execute the action and return the JSON value to answer. The arguments are the server, the request's parameters
    and who asks."""


async def _cancel(api: MasterServer, _: Mapping[str, Any], by: str) -> Any:
    api.apply(CancelRequested(time.time(), by))
    return {}


async def _save(api: MasterServer, arguments: Mapping[str, Any], by: str) -> Any:
    """Request snapshots; return their numbers by output."""
    output = arguments.get("output", -1)
    if not isinstance(output, int):
        raise InvalidRequest(f"output is {str(output)[:40]!r}, must be a number, -1 for all", "output")
    if problem := snapshot_policy.explain_refusal(api.state, output):
        raise Conflict(problem)
    api.apply(SaveRequested(time.time(), by, output))
    wanted = snapshot_policy.wanted_outputs(api.state, output)
    return {"saves": [[number, snapshot_policy.number_of(api.state, number)] for number in wanted]}


async def _dump_stacks(api: MasterServer, arguments: Mapping[str, Any], by: str) -> Any:
    """Dump the stacks that a user asks for: {"stacks": {task: text}, "uri", "problem"}. The arguments
    are `task` ("" or absent: all) and `native`.

    Raises:
        RequestRefused: there is no such task, or no program runs.
    """
    asked, native = arguments.get("task") or "", arguments.get("native", False)
    if not isinstance(asked, str) or not isinstance(native, bool):
        raise InvalidRequest("`task` is a text such as worker:1, `native` true or false", "task")
    running = list(hang_detection.tasks_with_programs(api.state))
    try:
        chosen = [TaskId.parse(asked)] if asked else running
    except ValueError as error:
        raise InvalidRequest(str(error), "task") from None
    if asked and chosen[0] not in api.state.tasks:
        raise NotFound(f"no task {asked[:80]}; there are {', '.join(map(str, list(api.state.tasks)[:20]))}", "task")
    if not chosen or chosen[0] not in running:
        raise Conflict(f"{asked or 'the job'} has no program that runs now", "task")
    found, uri, problem = await stack_dumps.collect_stacks(api.log_of, chosen, native), "", ""
    try:
        uri = await stack_dumps.save_stacks(api.directory, found, time.time())
    except HowdahError as error:
        problem = str(error)
    api.apply(StacksTaken(time.time(), by or "a user", uri, problem=problem))
    return {"stacks": {str(task): text for task, text in found.items()}, "uri": uri, "problem": problem}


async def _check(_: MasterServer, __: Mapping[str, Any], ___: str) -> Any:
    """Do nothing: a page asks whether its link may still act."""
    return {}


def _is_running(api: MasterServer) -> bool:
    return not api.log.view.state.ended


def _can_open_tensorboard(api: MasterServer) -> bool:
    return _is_running(api) and bool(locations.event_file_locations(api.log.view))


async def _tensorboard(api: MasterServer, arguments: Mapping[str, Any], _: str) -> Any:
    """Start TensorBoard where it does not run; `url` is "" until it is open: ask again."""
    if not _is_running(api):
        raise JobEnded("the job has ended: `howdah tensorboard` shows what it left")
    idle = arguments.get("idle_s", IDLE_S)
    if not isinstance(idle, (int, float)) or not 1 <= idle <= MAX_IDLE_S:
        raise InvalidRequest(f"idle_s is {str(idle)[:40]!r}, must be 1 to {MAX_IDLE_S} seconds", "idle_s")
    if not locations.event_file_locations(api.log.view):
        raise Conflict("the location of its event files is unknown: set `board` in the job file")
    try:
        await api.tensorboard.open(api.log.view, float(idle))
    except HowdahError as error:
        raise NotReady(str(error)) from error
    last = api.tensorboard.last
    return {"state": last.state, "url": api.tensorboard.link, "detail": last.detail}


async def _stop_tensorboard(api: MasterServer, _: Mapping[str, Any], by: str) -> Any:
    api.tensorboard.close(by)
    return {}


USER_ACTIONS: dict[str, UserAction] = {
    "cancel": UserAction(_is_running, _cancel),
    "save": UserAction(lambda api: not snapshot_policy.explain_refusal(api.state, -1), _save),
    "stacks": UserAction(lambda api: any(hang_detection.tasks_with_programs(api.state)), _dump_stacks),
    "tensorboard": UserAction(_can_open_tensorboard, _tensorboard),
    "tensorboard/stop": UserAction(lambda api: api.tensorboard.state is not None, _stop_tensorboard),
    "check": UserAction(_is_running, _check),
}


async def execute(api: MasterServer, action: str, arguments: Mapping[str, Any], by: str) -> Any:
    """Execute the action; return the JSON value to answer.

    Raises:
        NotFound: there is no such action.
        Conflict: the action is not possible now.
    """
    found = USER_ACTIONS.get(action)
    if found is None:
        raise NotFound(f"no action {action[:40]!r}; there are {', '.join(USER_ACTIONS)}")
    return await found.execute(api, arguments, by)
