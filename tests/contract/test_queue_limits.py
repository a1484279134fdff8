"""Tests that the queue limits of a real ResourceManager are understood."""

from __future__ import annotations

from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.pending_reasons import scheduler
from howdah.engines.yarn.records import GPU, MEMORY
from howdah.engines.yarn.rm.queue_limits import limits_from_web

TOTAL = {MEMORY: 8192, GPU: 4}


def test_limits_by_label(configuration: Configuration) -> None:
    info = scheduler(configuration)
    for label, more in (("", ""), ("big", " on nodes labelled big")):
        (found,) = limits_from_web(info, "default", "alice", label, {MEMORY: 1024, GPU: 5}, TOTAL) or ()
        assert found.sentence == f"queue default uses 0 gpus of at most 4 gpus{more}; 5 gpus more are wanted"
        assert limits_from_web(info, "root.default", "alice", label, {MEMORY: 1024, GPU: 4}, TOTAL) == []
    assert limits_from_web(info, "no-such", "alice", "", {MEMORY: 1}, TOTAL) is None
