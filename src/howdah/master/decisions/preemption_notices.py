"""Notifies programs of preemption: the engine announces that it will take a container away, while there is time to
save."""

from __future__ import annotations

from dataclasses import replace

from howdah.master.decisions.actions import Action, NotifyExecutors, RecordEvent
from howdah.master.state import GangState
from howdah.spec.events import LossAnnounced
from howdah.wire.messages import PreemptionNotice


def on_announced(state: GangState, event: LossAnnounced, actions: list[Action]) -> None:
    """Put the notice into the orders of the container's executor."""
    id_ = state.containers.get(event.container_id)
    if id_ is None or not state.open:
        return
    task, spec = state.tasks[id_], state.role(id_).preemption
    state.notices += 1
    task.notice = PreemptionNotice(
        state.notices,
        kind=event.cause,
        within_s=event.within_s or spec.grace_s,
        text=event.text,
        signal=spec.signal,
    )
    actions += [RecordEvent(replace(event, task=id_)), NotifyExecutors((id_,))]
