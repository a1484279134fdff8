"""What a program and the master of its job tell each other (`howdah.program`): who speaks, where that is found, limits.

A program signs with a key of its own, good for one attempt and one epoch of its task: what still runs of an older one
is not listened to. Its executor derives the key from its own, the master from the job's.
"""

from __future__ import annotations

from howdah.wire import auth

PATH = "/v1/here/"
VARIABLE = "HOWDAH_HERE"
"""Names a directory that only the program's account may read: `key`, `master` (its URL, rewritten when another takes
over), and `progress`, which the program writes."""
DIRECTORY = "howdah-here"
"""Its name, in the container's directory."""
KEY_FILE, MASTER_FILE, PROGRESS_FILE = "key", "master", "progress"
BEAT_FILE, NOTICE_FILE = "beat", "notice"
"""The program touches the one to show that it goes on; the other is there when its container will be taken away: JSON
with `kind`, `until` (epoch seconds of this node, 0: nobody knows) and `text`."""

PROGRAM = "program "
MAX_KEY = 512
"""Bytes of a key's name, and of those of barriers and curves."""
MAX_VALUE = 1 << 20
MAX_TOTAL = 64 << 20
"""Bytes of all names and values of a job together."""
MAX_POINTS = 1000
"""Points of curves in one message."""
MAX_WAIT_S = 10.0
"""How long one call may wait at the master; what waits longer asks again."""
LIVES = ("job", "epoch", "program")
"""How long a key lives: as the job; until the task that put it starts again; until the program that put it ends."""


def principal(task: str, attempt: int, epoch: int) -> str:
    """The name under which a program speaks: "program worker:1/1/2", of the first attempt, in epoch 2."""
    return f"{PROGRAM}{task}/{attempt}/{epoch}"


def key(executor_key: bytes, name: str) -> bytes:
    """The key of the program of that principal, from the key of its executor."""
    return auth.derive(executor_key, name)
