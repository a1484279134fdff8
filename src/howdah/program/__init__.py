"""The job, seen from inside: a program finds its peers, shares values with them, and says how far it is.

    from howdah import here

    here.put(f"ring/{here.rank}", f"{host}:{port}")
    right = here.get(f"ring/{(here.rank + 1) % here.size}", wait=60)
    here.barrier("ready")
    here.progress(0.25)

Nothing but the standard library is needed, and nothing has to be installed: the executor puts this package at the end
of PYTHONPATH. Every call raises HereError with one clear sentence when it can't be done; `inside` tells beforehand
whether this is a howdah job at all.
"""

from __future__ import annotations

import base64
import os
import secrets
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from howdah.program.task_identity import NAMES, HereError, HereTimeout, Member, Notice, World
from howdah.program.task_identity import current as _current
from howdah.program.task_identity import inside as _inside
from howdah.program.task_identity import told_notice as _told_notice
from howdah.program.task_identity import told_world as _told_world
from howdah.wire import program_protocol as _wire

__all__ = [
    "Change",
    "HereError",
    "HereTimeout",
    "Member",
    "Notice",
    "World",
    "alive",
    "barrier",
    "delete",
    "get",
    "keys",
    "metric",
    "notice",
    "progress",
    "put",
    "save",
    "swap",
    "watch",
    "world",
]

Value = Union[str, bytes]

inside: bool
job_id: str
job_name: str
task: str
role: str
index: int
rank: int
size: int
epoch: int
attempt: int
checkpoint_dir: Optional[str]
resume_from: Optional[str]


def __getattr__(name: str) -> Any:
    """What this program is, from its environment: `here.task` is `worker:1`, `here.rank` counts over all roles.

    `checkpoint_dir` and `resume_from` are None where the job has no checkpoints, or none to go on from.
    """
    if name == "inside":
        return _inside()
    if name in NAMES:
        return getattr(_current(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def world(now: bool = False) -> World:
    """All tasks of this program's world as it began; with `now` as they are, should some have been started again."""
    place = _current()
    known = None if now else _told_world(place)
    return known or World.of_message(_call("world", {"now": now}))


# How far it is


def progress(fraction: float) -> None:
    """This task has done `fraction` (0 to 1) of its work. Costs a small file, at most five times a second."""
    global _progress
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"progress({fraction!r}): a number from 0 to 1 is wanted")
    path, now = os.path.join(_current().directory, _wire.PROGRESS_FILE), time.monotonic()
    if fraction < 1.0 and now - _progress < 0.2:
        return
    _progress = now
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "w", encoding="ascii") as file:
        file.write(f"{fraction:.6f}\n")
    os.replace(fresh, path)


_progress = 0.0


def alive() -> None:
    """This program goes on, though it prints nothing and its progress stands: who says so once is taken to hang only
    when it stops saying so. `progress` and `metric` say it, too. Costs a touch of a file, at most once a second."""
    global _touched
    now = time.monotonic()
    if now - _touched >= 1.0:
        _touched = now
        with open(os.path.join(_current().directory, _wire.BEAT_FILE), "w", encoding="ascii") as file:
            file.write("\n")


_touched = float("-inf")


def notice() -> Optional[Notice]:
    """That this program's container, or its node, will be taken away, and when; None as long as nobody says so.

    It is a look at a file: ask after each step, save what is worth it, and go on or end with a status other than 0.
    """
    return _told_notice(_current())


def metric(name: str, value: float, step: Optional[int] = None) -> None:
    """A point of the curve `name` of this task, at `step`. It is sent beside the program, a batch a second.

    A job keeps 500 curves, and of each some 200 points for every tripling of its age. Infinite values and NaN are kept
    as gaps.
    """
    from howdah.program import metrics

    metrics.add(_name("metric", name), value, step)
    alive()


def save(wait: Union[bool, float] = False) -> Tuple[str, ...]:
    """Ask for a copy of the job's outputs as they are now. Tasks that ask within a second get the same one.

    With `wait` (seconds, or True for an hour) return the copies' URIs when they are there; else nothing, at once.

    Raises:
        HereError: the job has no output to copy, or there will be no copy, and why.
        HereTimeout: it isn't there in time.
    """
    numbers = [number for _, number in _call("save", {})["saves"]]
    if wait is False:
        return ()
    limit = 3600.0 if wait is True else float(wait)
    done = _wait_for("saved", {"numbers": numbers}, limit, "save()")["saves"]
    broken = [f"{one['uri'] or 'a copy'}: {one['reason']}" for one in done if one["reason"]]
    if broken:
        raise HereError(f"save(): {'; '.join(broken)}")
    return tuple(str(one["uri"]) for one in done)


# Values that the tasks of the job share


def put(key: str, value: Value, *, life: str = "epoch", ttl: Optional[float] = None) -> None:
    """Set `key` for all tasks. A value is text or bytes, up to 1 MiB, and comes back as what it was put.

    `life` says when the key goes by itself: with "epoch" when this task is started again, so that nobody meets peers
    of the time before; with "program" already when this program ends; with "job" never. `ttl` limits it to so many
    seconds in addition; put it again to renew it.
    """
    message = {"key": _name("put", key), **_sent(value, f"put({key!r})"), **_life(life, ttl)}
    _call("put", {**message, "op": _op()})


def get(key: str, wait: Optional[float] = None) -> Optional[Value]:
    """Its value; None when there is none. With `wait` it is waited for, so many seconds.

    Raises:
        HereTimeout: nobody put it in time.
    """
    message = {"key": _name("get", key)}
    if wait is None:
        return _received(_call("get", message))
    return _received(_wait_for("get", message, wait, f"get({key!r})"))


def keys(prefix: str = "") -> List[str]:
    """The names that begin with `prefix`, sorted."""
    found: List[str] = _call("keys", {"prefix": prefix})["keys"]
    return found


def delete(key: str) -> bool:
    """Remove it; whether there was one."""
    return bool(_call("delete", {"key": _name("delete", key)})["done"])


def swap(
    key: str, expected: Optional[Value], new: Optional[Value], *, life: str = "epoch", ttl: Optional[float] = None
) -> bool:
    """Set `key` to `new` if it is `expected`, in one step; whether it was. None is no value: neither before nor after.

    `swap("lock", None, here.task, life="program")` takes a lock that its holder can't forget to give back.
    """
    message: Dict[str, Any] = {"key": _name("swap", key), "op": _op(), **_life(life, ttl)}
    message["expected"] = None if expected is None else _sent(expected, f"swap({key!r})")
    message["new"] = None if new is None else _sent(new, f"swap({key!r})")
    return bool(_call("swap", message)["done"])


@dataclass(frozen=True)
class Change:
    """A key has this value now; None when it is gone."""

    key: str
    value: Optional[Value]


def watch(prefix: str = "", timeout: Optional[float] = None) -> Iterator[Change]:
    """What there is under `prefix`, then each change, as it comes; of changes quickly after another the last.

    Ends when nothing has changed for `timeout` seconds; without one it goes on as long as the program.
    """
    known: Dict[str, int] = {}
    since: Mapping[str, Any] = {"master": "", "revision": 0}
    quiet = time.monotonic()
    while True:
        left = _wire.MAX_WAIT_S if timeout is None else quiet + timeout - time.monotonic()
        wait = max(0.0, min(left, _wire.MAX_WAIT_S))
        answer = _call("watch", {"prefix": prefix, "since": since, "wait": round(wait, 3)}, wait)
        since = answer["since"]
        for change in _changes(known, answer):
            yield change
            quiet = time.monotonic()
        if timeout is not None and time.monotonic() >= quiet + timeout:
            return


def _changes(known: Dict[str, int], answer: Mapping[str, Any]) -> Iterator[Change]:
    """`names`, when they come, are all that is left; a master that took over tells again what is known already."""
    if answer["names"] is not None:
        left = set(answer["names"])
        for key in [key for key in known if key not in left]:
            del known[key]
            yield Change(key, None)
    for one in answer["entries"]:
        if known.get(one["key"]) != one["revision"]:
            known[one["key"]] = one["revision"]
            yield Change(one["key"], _received(one))


def barrier(
    name: str, count: Optional[int] = None, roles: Union[str, Iterable[str], None] = None, timeout: float = 600.0
) -> None:
    """Wait until all tasks of the world have come here, or all of `roles`, or any `count` processes.

    The same name may be used again and again: the n-th call of a program meets the n-th of the others.

    Raises:
        HereTimeout: they did not come within `timeout` seconds; says who is missing.
        HereError: one that is needed has ended and will never come.
    """
    wanted = None if roles is None else [roles] if isinstance(roles, str) else list(roles)
    message = {"name": _name("barrier", name), "round": _rounds.get(name, 0) + 1, "who": _process()}
    message.update(count=count, roles=wanted)
    try:
        _wait_for("barrier", message, timeout, f"barrier({name!r})")
    except HereTimeout:
        if not _call("withdraw", message)["done"]:  # else it was complete at this very moment
            raise
    _rounds[name] = _rounds.get(name, 0) + 1


_rounds: Dict[str, int] = {}
_known_process: Tuple[int, str] = (0, "")


def _process() -> str:
    """A name of this process that no other has; a forked one gets another."""
    global _known_process
    if _known_process[0] != os.getpid():
        _known_process = (os.getpid(), secrets.token_hex(8))
    return _known_process[1]


# What travels


def _call(name: str, message: Mapping[str, Any], wait: float = 0.0) -> Dict[str, Any]:
    from howdah.program import master_client  # http.client takes longer to import than most programs need it

    return master_client.call(name, message, wait)


def _wait_for(name: str, message: Mapping[str, Any], timeout: float, what: str) -> Dict[str, Any]:
    from howdah.program import master_client

    return master_client.wait_for(name, message, timeout, what)


def _op() -> str:
    """Marks one change, so that asking again does not make it twice."""
    return secrets.token_hex(8)


def _name(call: str, name: str) -> str:
    if not isinstance(name, str) or not name or len(name.encode()) > _wire.MAX_KEY:
        raise ValueError(f"{call}: a name is a text of 1 to {_wire.MAX_KEY} bytes, not {str(name)[:40]!r}")
    return name


def _life(life: str, ttl: Optional[float]) -> Dict[str, Any]:
    if life not in _wire.LIVES:
        raise ValueError(f"life={life!r}: one of {', '.join(_wire.LIVES)} is wanted")
    if ttl is not None and not ttl > 0:
        raise ValueError(f"ttl={ttl!r}: seconds, more than 0, are wanted")
    return {"life": life, "ttl": ttl}


def _sent(value: Value, what: str) -> Dict[str, Any]:
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{what}: a value is text or bytes, not {type(value).__name__}; json.dumps() makes a text")
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    if len(data) > _wire.MAX_VALUE:
        raise ValueError(f"{what}: {len(data)} bytes; a value has at most {_wire.MAX_VALUE}: put the path of a file")
    if isinstance(value, str):
        return {"value": value, "binary": False}
    return {"value": base64.b64encode(data).decode("ascii"), "binary": True}


def _received(answer: Mapping[str, Any]) -> Optional[Value]:
    value = answer.get("value")
    if value is None:
        return None
    return base64.b64decode(value) if answer["binary"] else str(value)
