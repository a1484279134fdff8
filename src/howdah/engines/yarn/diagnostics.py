"""What the ResourceManager says of an application, as people need it: the cause, without what is said of every one.

The sentences are those of Hadoop 3's AMState and CSAMContainerLaunchDiagnosticsConstants.
"""

from __future__ import annotations

import re

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


def tidy(diagnostics: str) -> str:
    """Without what YARN adds to every application."""
    lines = (re.sub(r"^Attempt recovered after RM restart", "", line).rstrip() for line in diagnostics.splitlines())
    return "\n".join(line for line in lines if line)


def waiting(diagnostics: str, queue: str) -> str:
    """Why an application without a running master has none yet; "" when nothing is said."""
    text = _STAMP.sub("", tidy(diagnostics))
    if not text:
        return ""
    if _STARTING.match(text):
        return "the master is starting"
    reason = _DETAILS.sub("", _STATE.sub("", text)).strip().rstrip(".")
    if "limit exceeded" in reason:
        reason += _limits(text)
    return f"waiting for the master's container in queue {queue}" + (f": {reason}" if reason else "")


def _limits(text: str) -> str:
    """` (asks <memory:512, vCores:1>, limit …)`, as far as the ResourceManager tells it."""
    found = ((word, re.search(rf"{name} = (<[^>]*>)", text)) for word, name in _LIMITS.items())
    said = ", ".join(f"{word} {match[1]}" for word, match in found if match)
    return f" ({said})" if said else ""
