"""What helps against a failure, by its cause: the same sentence in the client, on the page and in the history."""

from __future__ import annotations

from howdah.spec.message import Sentence, message

_NO_FAULT_OF_JOB = "nothing is wrong with the job: set `retries`, and a `checkpoint` to lose little"
ADVICE = {
    "memory": "raise resources.memory, or let it grow with resources.growth",
    "lost": _NO_FAULT_OF_JOB,
    "withdrawn": _NO_FAULT_OF_JOB,
    "gpu": "nothing is wrong with the job: have the node's GPU checked",
    "preempted": "nothing is wrong with the job: set `retries`, or use a queue with guaranteed capacity",
    "silent": "check that the node is up, then read the executor's log",
    "localise": "check that the inputs exist and can be read, and that the node's disks have room",
    "port": "let howdah reserve the ports (roles.NAME.ports) instead of fixed numbers",
    "start": "check that the command and its Python are on the nodes (environment)",
    "stalled": "howdah stacks --last shows where the programs were",
}
"""The template of the sentence for each cause (`Exit.cause`)."""


def advice(cause: str) -> Sentence:
    """Return what helps against a failure of this cause; "" if only its output can say."""
    return message(ADVICE[cause]) if cause in ADVICE else ""
