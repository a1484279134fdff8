"""What helps against a failure, by its cause: the same sentence in the client, on the page and in the history."""

from __future__ import annotations

from howdah.spec.message import Sentence, message

_NO_FAULT_OF_JOB = "nothing is wrong with the job: set `retries`, and a `checkpoint` to lose little"
ADVICE = {
    "memory": "raise resources.memory, or let it grow with resources.growth",
    "lost": _NO_FAULT_OF_JOB,
    "withdrawn": _NO_FAULT_OF_JOB,
    "gpu": "nothing is wrong with the job: have the node's GPU looked at",
    "preempted": "nothing is wrong with the job: set `retries`, or take a queue with a guarantee",
    "silent": "look whether the node still lives, and into the executor's log",
    "localise": "look whether the inputs are there and may be read, and at the node's disks",
    "port": "let howdah reserve the ports (roles.NAME.ports) instead of fixed numbers",
    "start": "look whether the command and its Python are on the nodes (environment)",
    "stalled": "howdah stacks --last shows where the programs were",
}
"""The template of the sentence for each cause (`Exit.cause`)."""


def advice(cause: str) -> Sentence:
    """Return what helps against a failure of this cause; "" if only its output can say."""
    return message(ADVICE[cause]) if cause in ADVICE else ""
