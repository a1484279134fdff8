"""Reduces the ResourceManager's diagnostics of an application to the cause.

The sentences that are removed are those of Hadoop 3's AMState and CSAMContainerLaunchDiagnosticsConstants.
"""

from __future__ import annotations

import re

from howdah.engines.yarn.exit_codes import explain
from howdah.spec.message import message

_MASTER = re.compile(r"AM Container for appattempt_\w+ exited with\s+exitCode: (-?\d+)")
_HEAD = re.compile(r"\s*Failing this attempt\.\s*Diagnostics: ")
_TRACKING = "For more detailed output, check the application tracking page"
_EPILOGUE = re.compile(rf"^{_TRACKING}.*", re.DOTALL | re.MULTILINE)
_STAMP = re.compile(r"^\[\w{3} \w{3} \d[^\]]*\] ?")
_STATE = re.compile(r"Application is (?:added to the scheduler and is not yet activated|Activated, waiting [^.]*)\.")
_STARTING = re.compile(r"Scheduler has assigned a container for AM|AM container is launched")
_DETAILS = re.compile(r"\s*(?:Last Node which was processed for the application|Details) :.*", re.DOTALL)
_LIMITS = {
    "asks": "AM Resource Request",
    "limit": "Queue Resource Limit for AM",
    "of this user": "User AM Resource Limit of the queue",
    "in use": "Queue AM Resource Usage",
}


def clean(diagnostics: str) -> str:
    """Remove what YARN adds to every application's diagnostics; for a master that could not say how it ended, keep
    its exit status and last lines."""
    died = _MASTER.search(diagnostics)
    if died:
        exit = explain(int(died[1]), _EPILOGUE.sub("", diagnostics))
        between = ": " if len(exit.lines) == 1 else "\n"
        return between.join((f"the job's master ended: {exit}", *exit.lines))
    lines = (re.sub(r"^Attempt recovered after RM restart", "", line).rstrip() for line in diagnostics.splitlines())
    return "\n".join(line for line in lines if line)


def attempt_end(diagnostics: str) -> str:
    """Return how one attempt of the master ended, from its `diagnostics`; "" if they do not say it."""
    died = _MASTER.search(diagnostics)
    if died:
        return str(explain(int(died[1]), _HEAD.sub("", diagnostics[died.end() :]).partition(_TRACKING)[0]))
    return next(iter(clean(diagnostics).splitlines()), "")


def explain_wait(diagnostics: str, queue: str) -> str:
    """Return why an application without a running master has none yet; "" if no reason is given."""
    text = _STAMP.sub("", clean(diagnostics))
    if not text or _MASTER.search(diagnostics):
        return text
    if _STARTING.match(text):
        return message("the master is starting")
    reason = _DETAILS.sub("", _STATE.sub("", text)).strip().rstrip(".")
    if "limit exceeded" in reason:
        reason += _limits(text)
    if not reason:
        return message("waiting for the master's container in queue {queue}", queue=queue)
    return message("waiting for the master's container in queue {queue}: {reason}", queue=queue, reason=reason)


def _limits(text: str) -> str:
    """Return ` (asks <memory:512, vCores:1>, limit …)`, as far as the ResourceManager says it."""
    found = ((word, re.search(rf"{name} = (<[^>]*>)", text)) for word, name in _LIMITS.items())
    limits = ", ".join(f"{word} {match[1]}" for word, match in found if match)
    return f" ({limits})" if limits else ""
