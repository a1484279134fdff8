"""Reads a job's state from the Job of its master and from the master's pod."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Mapping
from typing import Any

from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.api import Object
from howdah.engines.kubernetes.pod_status import container_state, taken_away, waits_for
from howdah.spec import State

ENDING = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
"""The conditions of a Job that has ended; the last two are those of a Job that waits for the ends of its pods."""


def job_condition(job: Object, *kinds: str) -> Object | None:
    """Return the first condition of these kinds that is true for a Job; None if there is none."""
    found = (each for each in job["status"].get("conditions") or () if each["status"] == "True")
    return next((each for each in found if each["type"] in kinds), None)


def outcome_of(pod: Object | None) -> tuple[State, str, float] | None:
    """Return a job's state, its reason, and the time of its end, from the last message of the master's container, where
    a master that completes its job leaves them; None if there is no such message."""
    last = container_state(pod, "terminated") if pod is not None else None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        outcome = json.loads((last or {}).get("message") or "")
        return State(outcome["state"]), str(outcome["diagnostics"]), float(outcome["finished"])
    return None


def state_of(job: Object, pod: Object | None) -> tuple[State, str, float]:
    """Return the same for a job whose master left no outcome, as the Job and the master's pod show it."""
    ended = job_condition(job, "Complete", "Failed")
    last = container_state(pod, "terminated") if pod is not None else None
    annotations = job["metadata"].get("annotations") or {}
    if ended is not None:
        finished = epoch(str(ended.get("lastTransitionTime") or "")) + 1.0
        if annotations.get(manifests.CANCELLED):
            return State.CANCELLED, f"cancelled by {annotations[manifests.CANCELLED]}", finished
        return State.FAILED, _why_failed(ended, last), finished
    if annotations.get(manifests.CANCELLED):
        return State.RUNNING, f"cancelled by {annotations[manifests.CANCELLED]}", 0.0
    if pod is not None and container_state(pod, "running"):
        return State.RUNNING, "", 0.0
    return State.PENDING, _why_pending(pod, last), 0.0


def _why_failed(ended: Object, last: Mapping[str, Any] | None) -> str:
    if ended["type"] == "Complete":
        return "its master has ended, and neither the master's pod nor the event log says how the job ended"
    said = " ".join(str((last or {}).get("message") or "").strip().splitlines()[-1:])
    text = str(ended.get("message") or ended.get("reason") or "")
    return f"the master failed: {said or (last or {}).get('reason') or 'it said nothing'} ({text})"


def _why_pending(pod: Object | None, last: Mapping[str, Any] | None) -> str:
    if pod is None:
        return ""
    taken = taken_away(pod)
    if last is not None or taken is not None:
        reason = taken[1] if taken else f"exit code {(last or {}).get('exitCode')}"
        return f"waiting for another master: the last one was ended ({reason})"
    return waits_for(pod)[1]


def submission_time(job: Object) -> float:
    """Return when a job was submitted, or its submission began, in epoch seconds."""
    annotations = job["metadata"].get("annotations") or {}
    return float(annotations.get(manifests.SUBMITTED) or epoch(job["metadata"]["creationTimestamp"]))


def epoch(text: str | None) -> float:
    """Return epoch seconds of a time as the API writes it; 0.0 for none."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0.0
