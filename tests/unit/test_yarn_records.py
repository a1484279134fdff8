"""Tests YARN's ids and resources as text and numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.engines.yarn import records
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import Resources


def parse_container_id(text: str) -> pb.ContainerId:
    match = re.fullmatch(r"container_(?:e(\d+)_)?(\d+)_(\d+)_(\d+)_(\d+)", text)
    assert match
    epoch, timestamp, application, attempt, number = (int(part or 0) for part in match.groups())
    app = pb.ApplicationId(cluster_timestamp=timestamp, id=application)
    attempt_id = pb.AttemptId(application_id=app, attempt=attempt)
    return pb.ContainerId(application_id=app, attempt_id=attempt_id, id=number | epoch << records.EPOCH_SHIFT)


@pytest.mark.parametrize(
    "text",
    [
        "container_1700000000000_0001_01_000001",
        "container_e02_1700000000000_0012_02_1234567",
        "container_1_10000_10_000099",
    ],
)
def test_container_ids_are_read_back(text: str) -> None:
    assert records.container_id(parse_container_id(text)) == text


def test_the_epoch_is_in_the_high_bits() -> None:
    parsed = parse_container_id("container_e02_1700000000000_0001_01_000003")
    assert parsed.id == (2 << 40) + 3
    assert parsed.attempt_id.application_id.id == 1


@given(st.integers(0, 999), st.integers(1, 99999), st.integers(1, 99), st.integers(1, (1 << 40) - 1))
def test_any_container_id(epoch: int, application: int, attempt: int, number: int) -> None:
    app = pb.ApplicationId(cluster_timestamp=1700000000000, id=application)
    attempt_id = pb.AttemptId(application_id=app, attempt=attempt)
    id_ = pb.ContainerId(application_id=app, attempt_id=attempt_id, id=epoch << 40 | number)
    assert parse_container_id(records.container_id(id_)) == id_


@pytest.mark.parametrize("text", ["", "application_1_1_1", "job_17", "container_1_2_3"])
def test_other_text_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="is not an application id"):
        records.parse_application_id(text)


def test_application_ids_are_read_back() -> None:
    assert records.application_id(records.parse_application_id("application_17_0003")) == "application_17_0003"


def test_resources_there_and_back() -> None:
    wanted = Resources(512, 2, 1, {"yarn.io/fpga": 3})
    assert records.to_resources(records.to_resource(records.amounts(wanted))) == wanted


def test_memory_and_cores_are_in_fields_and_map() -> None:
    resource = records.to_resource(records.amounts(Resources(512, 2)))
    assert (resource.memory, resource.vcores) == (512, 2)
    assert {value.key: (value.value, value.units) for value in resource.values} == {
        "memory-mb": (512, "Mi"),
        "vcores": (2, ""),
    }


def test_units_are_brought_to_one() -> None:
    resource = pb.Resource(memory=1, vcores=1, values=[pb.ResourceValue(key="disk", value=2, units="k", type=0)])
    assert records.from_resource(resource)["disk"] == 2000


def test_names_of_states() -> None:
    assert records.name(records.APPLICATION_STATES, 5) == "RUNNING"
    assert records.name(records.APPLICATION_STATES, 99) == "99"
