"""Why a job waits for containers: the reasons that engines give, and the sentences about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from howdah.spec.message import Sentence, message
from howdah.spec.values import dataclass

SHOWN_NODES = 6
REASONS = {
    "queue-stopped": "queue {queue} is stopped: it grants nothing",
    "queue-limit": "queue {queue} uses {used} of at most {limit}; {needs} more are wanted",
    "label-limit": ("queue {queue} uses {used} of at most {limit} on nodes labelled {label}; {needs} more are wanted"),
    "queue-pending": "{count} jobs wait in queue {queue}",
    "user-limit": "{user} uses {used} of at most {limit} in queue {queue}; {needs} more are wanted",
    "label": "{role}: no node that runs has the label {label}",
    "constraint": ("{role} is placed as {constraint} says (placement.constraint): a node with room may not satisfy it"),
    "nodes-out": "nodes that take no containers: {nodes}",
    "too-small": "{role} needs {needs}; too small for it: {nodes}",
    "full": "{role} needs {needs}; occupied: {nodes}",
    "headroom": (
        "{role} needs {needs}; the ResourceManager leaves this job {left}: with Kerberos the master may not ask more,"
        " but `howdah explain {job}` shows queue and nodes"
    ),
    "room": "{role}: there is room on {nodes}; the scheduler gives it in its turn",
}
"""The template of the sentence for each kind of reason; its facts are the values."""


@dataclass(frozen=True)
class PendingReason:
    """Says why the engine has not granted a job's containers."""

    kind: str
    """`said` (with a `text` of the engine's own), `queue-stopped`, `queue-limit`, `label-limit`, `queue-pending`,
    `user-limit`, `label`, `constraint`, `too-small`, `full`, `headroom`, `room` or `nodes-out`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values that the sentence needs."""

    @property
    def sentence(self) -> Sentence:
        """Return the reason as a sentence for people."""
        facts = dict(self.facts)
        if self.kind not in REASONS:
            text: Sentence = facts.get("text", self.kind)
            return text
        if self.kind in ("too-small", "full", "headroom", "room"):
            facts["needs"] = f"{facts['count']} × ({facts['needs']})"
        if "nodes" in facts:
            facts["nodes"] = _names(facts["nodes"], "state" if self.kind == "nodes-out" else "has")
        return message(REASONS[self.kind], **facts)


def _names(nodes: Sequence[Mapping[str, str]], fact: str) -> str:
    """Return the names of nodes with a fact about each; nodes with the same fact stand together: `node2, node3 (32 GiB
    memory), node4 (8 GiB memory)`."""
    alike: dict[str, list[str]] = {}
    for node in nodes:
        alike.setdefault(node[fact], []).append(node["node"])
    parts = []
    for has, names in alike.items():
        more = f" +{len(names) - SHOWN_NODES}" if len(names) > SHOWN_NODES else ""
        parts.append(f"{', '.join(names[:SHOWN_NODES])}{more} ({has})")
    return "; ".join(parts)
