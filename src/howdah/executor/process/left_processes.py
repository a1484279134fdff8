"""The message about processes that a command leaves behind."""

from __future__ import annotations

from howdah.spec.message import Message, message


def left_in_background(names: str, grace_s: float) -> Message:
    """Return the message for users when a command has ended before processes that it has started."""
    return message(
        "the command has ended; what it has left in the background is stopped, and killed after {seconds} s (a command"
        " that ends with `wait $!` waits for the last one, and fails with it): {names}",
        seconds=f"{grace_s:g}",
        names=names,
    )
