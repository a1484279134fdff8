"""Tests that data sets over a feed give each row once, however often a program goes through them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest

from howdah.spark import datasets, partition_data


class Feed:
    """A feed of so many numbers."""

    def __init__(self, rows: int) -> None:
        self.left, self.is_stopped = list(range(rows)), False

    def next_batch(self, rows: int) -> dict[str, Any]:
        taken, self.left = self.left[:rows], self.left[rows:]
        return {"n": numpy.array(taken)} if taken and not self.is_stopped else {}

    def batches(self, rows: int) -> Any:
        while batch := self.next_batch(rows):
            yield batch

    def terminate(self) -> None:
        self.is_stopped = True


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Feed:
    torch, data, tensorflow = ModuleType("torch"), ModuleType("torch.utils.data"), ModuleType("tensorflow")
    torch.from_numpy = lambda array: array  # type: ignore[attr-defined]
    data.DataLoader = lambda dataset, batch_size: dataset  # type: ignore[attr-defined]
    data.IterableDataset = type("IterableDataset", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})  # type: ignore[attr-defined]
    made: Any = SimpleNamespace(Dataset=SimpleNamespace(from_generator=lambda generate, output_signature: generate))
    tensorflow.data, tensorflow.nest = made, SimpleNamespace(map_structure=lambda *_: None)  # type: ignore[attr-defined]
    for module in (torch, data, tensorflow):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    found = Feed(10)
    monkeypatch.setattr(partition_data, "_contexts", [SimpleNamespace(feed=lambda: found)])
    monkeypatch.setattr(partition_data, "_has_enough", 0)
    return found


def rows_of(loader: Any) -> list[int]:
    return [int(number) for (batch,) in loader for number in batch]


def test_each_pass_of_endless_data_has_the_next_rows(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_data, "_is_endless", True)
    loader = partition_data.get_spark_partition_data_loader(4, 3)
    assert [rows_of(loader), rows_of(loader)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert not feed.is_stopped


def test_a_pass_for_which_no_rows_come_is_refused(feed: Feed) -> None:
    loader = partition_data.get_spark_partition_data_loader(4, 3)
    assert rows_of(loader) == [0, 1, 2, 3]
    assert feed.is_stopped
    for again in (loader, partition_data.get_spark_partition_data_loader(4, 3)):
        with pytest.raises(RuntimeError, match="no more rows come after the 4 of num_samples"):
            rows_of(again)


def test_the_first_batch_of_tensorflow_comes_once(feed: Feed) -> None:
    generate = datasets.tf_dataset(feed, 4)  # type: ignore[arg-type]
    assert [batch["n"].tolist() for batch in generate()] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(generate()) == []
