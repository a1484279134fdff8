"""The interface of a program to its job: it finds its peers, shares values with them, and reports its progress.

    from howdah import here

    here.put(f"ring/{here.rank}", f"{host}:{port}")
    right = here.get(f"ring/{(here.rank + 1) % here.size}", wait=60)
    here.barrier("ready")
    here.progress(0.25)

The package needs the standard library only, and need not be installed: the executor puts it at the end of PYTHONPATH.
A call that fails raises HereError with one clear sentence; `inside` says beforehand whether this is a howdah job.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from howdah.program.task_identity import NAMES, HereError, HereTimeout, Notice, Peer, Peers
from howdah.program.task_identity import current as _current
from howdah.program.task_identity import inside as _inside
from howdah.program.task_identity import read_notice as _read_notice
from howdah.wire import program_protocol as _wire

__all__ = [
    "Change",
    "HereError",
    "HereTimeout",
    "Notice",
    "Peer",
    "Peers",
    "Value",
    "barrier",
    "compare_and_set",
    "delete",
    "get",
    "heartbeat",
    "keras_callback",
    "keys",
    "lightning_callback",
    "metric",
    "notice",
    "progress",
    "put",
    "save",
    "watch",
    "world",
]

Value = Union[str, bytes]
"""The value of a key, which tasks share."""

# Names of earlier versions; so are `alive` and `swap`.
World = Peers
Member = Peer

# Facts about this program. `__all__` has none of them: outside a job `import *` would fail.
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
    """Read a fact about this program from its environment: `here.task` is `worker:1`, `here.rank` counts all roles.

    `checkpoint_dir` and `resume_from` are None if the job has no checkpoints, or none to continue from.
    """
    if name == "inside":
        return _inside()
    if name in NAMES:
        return getattr(_current(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def world(now: bool = False) -> Peers:
    """Return all tasks that started together with this program.

    With `now` the answer names the hosts and ports of tasks that have been started again since.
    """
    text = _current().world_text
    return Peers.of_message(json.loads(text) if text and not now else _call("world", {"now": now}))


# Progress


def progress(fraction: float) -> None:
    """Report that this task has done `fraction` (0 to 1) of its work.

    Writes a small file, at most five times a second. Without room for it the report is lost, and the program goes on.
    """
    global _progress_at
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"progress({fraction!r}): must be a number from 0 to 1")
    path, now = os.path.join(_current().directory, _wire.PROGRESS_FILE), time.monotonic()
    if fraction < 1.0 and now - _progress_at < 0.2:
        return
    _progress_at = now
    new = f"{path}.{os.getpid()}"
    try:
        with open(new, "w", encoding="ascii") as file:
            file.write(f"{fraction:.6f}\n")
        os.replace(new, path)
    except OSError as error:
        _tell_lost(error)


_progress_at = 0.0


def heartbeat() -> None:
    """Report that this program still works, though it prints nothing and its progress does not change.

    Once a program has called this, it counts as hanging only when it stops calling. `progress` and `metric` count as
    calls. Touches a file, at most once a second.
    """
    global _touched_at
    now = time.monotonic()
    if now - _touched_at >= 1.0:
        _touched_at, path = now, os.path.join(_current().directory, _wire.BEAT_FILE)
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write("\n")
        except OSError as error:
            _tell_lost(error)


_touched_at = float("-inf")
alive = heartbeat


def _tell_lost(error: OSError) -> None:
    """Report once that a report is lost: a disk that is full for a moment must not end a training."""
    global _has_told_lost
    if not _has_told_lost:
        _has_told_lost = True
        sys.stderr.write(f"[howdah.program: reports of progress are lost: {error}]\n")


_has_told_lost = False


def notice() -> Optional[Notice]:
    """Return the warning that this program's container, or its node, will be taken away; None without a warning.

    The call reads a file. Ask after each step, save what must not be lost, and continue or end with a status other than
    0.
    """
    return _read_notice(_current())


def metric(name: str, value: float, step: Optional[int] = None) -> None:
    """Add a point to this task's metric `name`, at `step`. A thread sends the points, one batch a second.

    A job keeps 500 metrics. Of each metric it keeps the first 3000 points (of more than ten metrics 30,000 together),
    and after that some 200 for every tripling of its age. Infinite values and NaN are kept as gaps.
    """
    from howdah.program import metrics

    metrics.add(_checked_name("metric", name), value, step)
    heartbeat()


def keras_callback() -> Any:
    """Return a callback for Keras's fit() that reports progress after each batch, and the metrics of each epoch, whose
    number is their step.

    Raises:
        HereError: Keras can't be imported.
    """
    from howdah.program import callbacks

    return callbacks.keras_callback(callbacks.Reports(progress, metric, heartbeat))


def lightning_callback() -> Any:
    """Return a callback for Lightning's Trainer that reports progress after each batch, and metrics as often as the
    trainer logs. The first of its processes reports alone.

    Raises:
        HereError: Lightning can't be imported.
    """
    from howdah.program import callbacks

    return callbacks.lightning_callback(callbacks.Reports(progress, metric, heartbeat))


def save(wait: Optional[float] = None) -> Tuple[str, ...]:
    """Request a snapshot of the job's outputs as they are now. Tasks that ask within a second share one snapshot.

    With `wait` (seconds; True means an hour) return the snapshots' URIs when they are complete; else return at once.

    Raises:
        HereError: the job has no output that a snapshot could hold, or the snapshot failed, and why.
        HereTimeout: the snapshot is not complete in time.
    """
    numbers = [number for _, number in _call("save", {})["saves"]]
    if wait is None or wait is False:
        return ()
    timeout = 3600.0 if wait is True else float(wait)
    snapshots = _wait_for("saved", {"numbers": numbers}, timeout, "save()")["saves"]
    problems = [f"{found['uri'] or 'a snapshot'}: {found['reason']}" for found in snapshots if found["reason"]]
    if problems:
        raise HereError(f"save(): {'; '.join(problems)}")
    return tuple(str(found["uri"]) for found in snapshots)


# Values that the tasks of the job share


def put(key: str, value: Value, *, life: str = "epoch", ttl: Optional[float] = None) -> None:
    """Set `key` for all tasks. A value is text or bytes, up to 1 MiB, and comes back as the type that was put.

    `life` says when the key is removed: with "epoch" when this task is started again, so that no task meets peers of an
    earlier start; with "program" when this program ends; with "job" never. `ttl` is the time in seconds
    after which it is removed at the latest; put it again to renew it.
    """
    message = {"key": _checked_name("put", key), **_encoded(value, f"put({key!r})"), **_lifetime(life, ttl)}
    _call("put", {**message, "op": _operation_id()})


def get(key: str, wait: Optional[float] = None) -> Optional[Value]:
    """Return the value of `key`; None when there is none. `wait` is the number of seconds to wait for a value.

    Raises:
        HereTimeout: no task put the key in time.
    """
    message = {"key": _checked_name("get", key)}
    if wait is None:
        return _decode_value(_call("get", message))
    return _decode_value(_wait_for("get", message, wait, f"get({key!r})"))


def keys(prefix: str = "") -> List[str]:
    """List the keys that begin with `prefix`, sorted."""
    found: List[str] = _call("keys", {"prefix": prefix})["keys"]
    return found


def delete(key: str) -> bool:
    """Remove `key`; False when there was none."""
    return bool(_call("delete", {"key": _checked_name("delete", key)})["done"])


def compare_and_set(
    key: str, expected: Optional[Value], new: Optional[Value], *, life: str = "epoch", ttl: Optional[float] = None
) -> bool:
    """Set `key` to `new` if its value is `expected`, in one step; False when it has another value. None means no value.

    `compare_and_set("lock", None, here.task, life="program")` takes a lock that is released when this program ends.
    """
    what = f"compare_and_set({key!r})"
    message: Dict[str, Any] = {"key": _checked_name("compare_and_set", key), "op": _operation_id()}
    message.update(_lifetime(life, ttl))
    message["expected"] = None if expected is None else _encoded(expected, what)
    message["new"] = None if new is None else _encoded(new, what)
    return bool(_call("swap", message)["done"])


swap = compare_and_set


@dataclass(frozen=True)
class Change:
    """One change that `watch` reports."""

    key: str
    """The key that has changed."""
    value: Optional[Value]
    """Its new value; None when the key was removed."""


def watch(prefix: str = "", timeout: Optional[float] = None) -> Iterator[Change]:
    """Yield the keys that begin with `prefix`, then each change; of several quick changes of a key only the last.

    The iteration ends when nothing has changed for `timeout` seconds; without a timeout it never ends.
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
    """Compare an answer with the `known` revisions: a master that took over repeats entries that are known already.

    `names`, when the answer has them, are all keys that are left.
    """
    if answer["names"] is not None:
        for key in set(known).difference(answer["names"]):
            del known[key]
            yield Change(key, None)
    for entry in answer["entries"]:
        if known.get(entry["key"]) != entry["revision"]:
            known[entry["key"]] = entry["revision"]
            yield Change(entry["key"], _decode_value(entry))


def barrier(
    name: str, count: Optional[int] = None, roles: Union[str, Iterable[str], None] = None, timeout: float = 600.0
) -> None:
    """Wait until all tasks of the world have called this, or all tasks of `roles`, or any `count` processes.

    The same name may be used again and again: the n-th call of a program meets the n-th call of the others.

    Raises:
        HereTimeout: not all have called within `timeout` seconds; the message names the missing ones.
        HereError: a task that is needed has ended and will never call.
    """
    wanted = None if roles is None else [roles] if isinstance(roles, str) else list(roles)
    message = {"name": _checked_name("barrier", name), "round": _rounds.get(name, 0) + 1, "who": _process_id()}
    message.update(count=count, roles=wanted)
    try:
        _wait_for("barrier", message, timeout, f"barrier({name!r})")
    except HereTimeout:
        if not _call("withdraw", message)["done"]:  # else it was complete at this very moment
            raise
    _rounds[name] = _rounds.get(name, 0) + 1


_rounds: Dict[str, int] = {}
_own_process: Tuple[int, str] = (0, "")


def _process_id() -> str:
    """Return a random name of this process; a forked process gets another one."""
    global _own_process
    if _own_process[0] != os.getpid():
        _own_process = (os.getpid(), secrets.token_hex(8))
    return _own_process[1]


# Messages to the master


def _call(name: str, message: Mapping[str, Any], wait: float = 0.0) -> Dict[str, Any]:
    from howdah.program import master_client  # http.client takes longer to import than most programs need it

    return master_client.call(name, message, wait)


def _wait_for(name: str, message: Mapping[str, Any], timeout: float, what: str) -> Dict[str, Any]:
    from howdah.program import master_client

    return master_client.wait_for(name, message, timeout, what)


def _operation_id() -> str:
    """Name one change, so that a repeated request does not make it twice."""
    return secrets.token_hex(8)


def _checked_name(call: str, name: str) -> str:
    if not isinstance(name, str) or not name or len(name.encode()) > _wire.MAX_KEY:
        raise ValueError(f"{call}: a name is a text of 1 to {_wire.MAX_KEY} bytes, not {str(name)[:40]!r}")
    return name


def _lifetime(life: str, ttl: Optional[float]) -> Dict[str, Any]:
    if life not in _wire.LIVES:
        raise ValueError(f"life={life!r}: must be one of {', '.join(_wire.LIVES)}")
    if ttl is not None and not ttl > 0:
        raise ValueError(f"ttl={ttl!r}: must be more than 0 seconds")
    return {"life": life, "ttl": ttl}


def _encoded(value: Value, what: str) -> Dict[str, Any]:
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{what}: a value is text or bytes, not {type(value).__name__}; json.dumps() makes a text")
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    if len(data) > _wire.MAX_VALUE:
        raise ValueError(f"{what}: {len(data)} bytes; a value has at most {_wire.MAX_VALUE}: put the path of a file")
    if isinstance(value, str):
        return {"value": value, "binary": False}
    return {"value": base64.b64encode(data).decode("ascii"), "binary": True}


def _decode_value(answer: Mapping[str, Any]) -> Optional[Value]:
    value = answer.get("value")
    if value is None:
        return None
    return base64.b64decode(value) if answer["binary"] else str(value)
