"""The protocol between a program (`howdah.program`) and its master: names of files, principals and limits.

A program signs with a key of its own, good for one attempt and one epoch of its task: the master refuses programs of
an older epoch. Its executor derives the key from its own key, the master from the job's.
"""

from __future__ import annotations

from howdah.wire import auth

PATH = "/v1/here/"
VARIABLE = "HOWDAH_HERE"
"""Names a directory that only the program's account may read: `key`, `master` (its URL, rewritten when another takes
over), and `progress`, which the program writes."""
DIRECTORY = "howdah-here"
"""The name of that directory, in the container's directory."""
KEY_FILE, MASTER_FILE, PROGRESS_FILE = "key", "master", "progress"
BEAT_FILE, NOTICE_FILE, TOKEN_FILE = "beat", "notice", "trainer-token"
"""The program touches `beat` to show that it goes on. `notice` exists when the container will be taken away: JSON with
`kind`, `until` (epoch seconds of this node, 0 when not known) and `text`. `trainer-token` is the token with which
training libraries report to the executor."""

FUNCTION_RESULTS = "howdah-results"
"""The output, in the working directory, in which tasks keep the result of a function or of a notebook's cell. The
client that submitted the job reads the output and removes it, so a job's page and log do not name its place."""

PROGRAM = "program "
MAX_KEY = 512
"""Bytes of the name of a key, a barrier or a metric."""
MAX_VALUE = 1 << 20
MAX_TOTAL = 64 << 20
"""Bytes of all names and values of a job together."""
MAX_POINTS = 1000
"""Points of metrics in one message."""
MAX_WAIT_S = 10.0
"""How long one call may wait at the master; a program that waits longer repeats the call."""
LIVES = ("job", "epoch", "program")
"""The end of a key's life: the end of the job; the next start of the task that put it; the end of the program that put
it."""


def program_principal(task: str, attempt: int, epoch: int) -> str:
    """Return the principal of a program: "program worker:1/1/2" is that of the first attempt of worker:1, in epoch
    2."""
    return f"{PROGRAM}{task}/{attempt}/{epoch}"


def program_key(executor_key: bytes, name: str) -> bytes:
    """Derive the key of a program from the key of its executor; `name` is the program's principal."""
    return auth.derive(executor_key, name)
