"""Derives from a pod's status how its container ended, why it is taken away, and what it waits for."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from howdah.spec import Exit
from howdah.spec.message import Message, message

CONTAINER = "howdah"
"""The name of the one container that matters; clusters may add others to a pod."""
_IMAGE_PROBLEMS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
_START_PROBLEMS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_NEVER_RAN = ("StartError", "ContainerCannotRun", "ContainerStatusUnknown")
_TAKEN = {
    "PreemptionByScheduler": ("preempted", "preempted: the scheduler gave its room to a pod of higher priority"),
    "EvictionByEvictionAPI": ("withdrawn", "evicted from its node, as when a node is drained"),
    "TerminationByKubelet": ("withdrawn", "ended by its node: {text}"),
    "DeletionByTaintManager": ("withdrawn", "its node is lost or must not run it any more: {text}"),
    "DeletionByPodGC": ("lost", "its node is gone"),
}
"""The meanings of the reasons of the condition DisruptionTarget."""


def name_of(pod: Mapping[str, Any]) -> str:
    """Return the pod's name."""
    return str(pod["metadata"]["name"])


def node_of(pod: Mapping[str, Any]) -> str:
    """Return the node on which the pod is; "" while it has none."""
    return str(pod["spec"].get("nodeName") or "")


def condition(pod: Mapping[str, Any], kind: str, status: str = "True") -> Mapping[str, Any] | None:
    """Return the pod's condition of this type, if it has this status."""
    found = (each for each in pod["status"].get("conditions") or () if each["type"] == kind)
    return next((each for each in found if each["status"] == status), None)


def container_state(pod: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the container's `running`, `waiting` or `terminated` state, if it is in that one."""
    for each in pod["status"].get("containerStatuses") or ():
        if each["name"] == CONTAINER:
            found: Mapping[str, Any] | None = each["state"].get(kind)
            return found
    return None


def taken_away(pod: Mapping[str, Any]) -> tuple[str, Message] | None:
    """Return the cause and the reason if the cluster, or a user, takes the pod away."""
    disruption = condition(pod, "DisruptionTarget")
    if disruption is not None:
        text = str(disruption.get("message") or disruption.get("reason") or "")
        cause, template = _TAKEN.get(str(disruption.get("reason")), ("withdrawn", "taken away: {text}"))
        if disruption.get("reason") == "DeletionByTaintManager" and _is_node_silent(pod):
            cause = "lost"
        return cause, message(template, text=text)
    if pod["metadata"].get("deletionTimestamp"):
        return "withdrawn", message("its pod was deleted")
    return None


def _is_node_silent(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod's node does not answer. In this case Kubernetes itself marks its pods as not ready
    (MarkPodsNotReady), and keeps the node's last report about their containers."""
    return bool(condition(pod, "Ready", "False") and condition(pod, "ContainersReady"))


def end_of(pod: Mapping[str, Any], memory_mib: int) -> Exit | None:
    """Return how the pod's container ended; None if it has not. `memory_mib` is its limit."""
    taken, ended = taken_away(pod), container_state(pod, "terminated")
    if ended is None:
        if pod["status"].get("phase") not in ("Failed", "Succeeded"):
            # The status of a pod on a node that does not answer is not updated any more.
            return Exit("lost", detail=taken[1]) if taken is not None and taken[0] == "lost" else None
        return _without_container(pod, taken)
    code, reason = int(ended.get("exitCode", 0)), str(ended.get("reason") or "")
    if reason == "OOMKilled" and code:
        detail = message("killed for using more memory than its limit of {mib} MiB", mib=memory_mib)
        return Exit("memory", signal=signal.SIGKILL, detail=detail)
    if reason in _NEVER_RAN:
        text = str(ended.get("message") or reason)
        return Exit("start", detail=message("its container could not be started: {reason}", reason=text))
    if taken is not None and code in (0, 128 + signal.SIGTERM, 128 + signal.SIGKILL):
        return Exit(taken[0], detail=taken[1])
    if 128 < code < 128 + signal.NSIG:
        return Exit("signal", signal=code - 128, detail=message("killed by signal {number}", number=code - 128))
    return Exit("exit", code)


def _without_container(pod: Mapping[str, Any], taken: tuple[str, Message] | None) -> Exit:
    """Return the end of a pod whose container's end is not known, because its node refused or ended it."""
    reason, text = str(pod["status"].get("reason") or ""), str(pod["status"].get("message") or "")
    if reason or text:
        said = " ".join(f"{reason}: {text}".strip(": ").split())
        return Exit(taken[0] if taken else "withdrawn", detail=message("ended by its node: {text}", text=said))
    if taken is not None:
        return Exit(taken[0], detail=taken[1])
    return Exit("withdrawn", detail=message("ended by its node: {text}", text=pod["status"].get("phase", "")))


def waits_for(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the pod waits for (`room`, `image`, `start`) with the cluster's words; two empty texts if it does not
    wait."""
    unscheduled = condition(pod, "PodScheduled", "False")
    if unscheduled is not None:
        return "room", str(unscheduled.get("message") or unscheduled.get("reason") or "")
    waiting = container_state(pod, "waiting")
    if waiting is not None:
        reason = str(waiting.get("reason") or "")
        kind = "image" if reason in _IMAGE_PROBLEMS else "start" if reason in _START_PROBLEMS else ""
        return (kind, f"{reason}: {waiting.get('message') or ''}".strip(": ")) if kind else ("", "")
    return "", ""
