"""What the engine says beforehand of containers that it will take away: told to the programs in them, while there is
time to save."""

from __future__ import annotations

from dataclasses import replace

from howdah.master.decisions.actions import Action, NotifyExecutors, RecordEvent
from howdah.master.state import GangState
from howdah.spec.events import LossAnnounced
from howdah.wire.messages import PreemptionNotice


def on_announced(state: GangState, event: LossAnnounced, actions: list[Action]) -> None:
    """It is in the orders of the container's executor from now on."""
    id_ = state.containers.get(event.container_id)
    if id_ is None or not state.open:
        return
    task, told = state.tasks[id_], state.role(id_).preemption
    state.notices += 1
    task.notice = PreemptionNotice(
        state.notices, kind=event.cause, within_s=event.within_s or told.grace_s, text=event.text, signal=told.signal
    )
    actions += [RecordEvent(replace(event, task=id_)), NotifyExecutors((id_,))]
