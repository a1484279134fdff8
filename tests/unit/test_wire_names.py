"""Fields whose names in the code are newer than the names that messages and job.json have."""

from __future__ import annotations

from howdah.spec import JobSpec, StagedJob
from howdah.spec.codec import decode, encode
from howdah.wire.messages import (
    Assignment,
    CheckpointSyncOrder,
    EventFileSyncOrder,
    Goal,
    Orders,
    Phase,
    Status,
    StdoutOutput,
)


def test_messages_keep_the_names_of_earlier_versions() -> None:
    assignment = Assignment(
        "train",
        placeholder_uris={"data": ("hdfs://n/a",)},
        stdout_output=StdoutOutput(uri="hdfs://n/out", name="part", output="out"),
        unpack_into_workdir={"code": ""},
        checkpoint_sync=CheckpointSyncOrder(path="ck", uri="hdfs://n/ck"),
        event_file_sync=EventFileSyncOrder(path="logs"),
    )
    record = encode(assignment)
    assert set(record) == {"command", "listed", "capture", "spread", "mirror", "board"}
    assert decode(Assignment, record) == assignment
    orders = Orders(epoch=1, goal=Goal.REASSIGN, reassign_to="worker:3/2")
    assert encode(orders)["become"] == "worker:3/2"
    assert decode(Orders, encode(orders)) == orders
    status = Status("worker:1", 1, 1, 1, Phase.RUNNING, host="n1", pid=1, idle_s=2.0, orders_digest="1/run")
    assert (encode(status)["quiet_s"], encode(status)["told"]) == (2.0, "1/run")
    assert decode(Status, encode(status)) == status


def test_a_staged_job_keeps_the_name_of_node_penalties() -> None:
    staged = StagedJob(JobSpec({}), home="hdfs://n/home", node_penalties={"n1": 2.0})
    assert encode(staged)["strikes"] == {"n1": 2.0}
    assert decode(StagedJob, encode(staged)) == staged
