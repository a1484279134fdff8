"""Tests prices as an administrator writes them, and what jobs cost by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_jobs import BEGAN, begun, ended, job_id, write

from howdah.config.settings import resolve
from howdah.errors import InvalidRequest, SpecError
from howdah.history import csv_tables, queries
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index
from howdah.history.usage import usage
from howdah.spec import TaskId, prices, uris
from howdah.spec.events import Used
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage

PRICES = prices.parse("gpu=2, gpu:h100=4, gpu:H100 NVL=5, cpu=0.5, memory=0.25, currency=EUR")


def test_the_longest_part_of_a_models_name_decides() -> None:
    assert PRICES is not None
    found = [PRICES.of_gpu(model) for model in ("", "NVIDIA A100", "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL")]
    assert found == [2, 2, 4, 5]
    assert prices.parse(" ") is None
    assert prices.parse("gpu:H200=1,currency=€") == prices.Prices("€", 0.0, {"h200": 1.0}, 0.0, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        *("gpu=2", "currency=EUR", "gpu=x,currency=EUR", "gpu=-1,currency=EUR", "gpu=inf,currency=EUR", "gpu"),
        *("gpu:=1,currency=E", "gpu=1,gpu=2,currency=EUR", "gpus=1,currency=EUR", "gpu=1,currency=<b>"),
        "gpu=1,currency=E,currency=F",
    ],
)
def test_other_texts_are_refused_where_they_stand(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"prices: '{text}'\n")
    with pytest.raises(SpecError, match="must be prices of an hour, such as"):
        resolve({}, {"HOWDAH_HOME": str(tmp_path)})


def test_prices_may_be_a_list(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("prices: [gpu=2, currency=EUR]\n")
    assert resolve({}, {"HOWDAH_HOME": str(tmp_path)})["prices"] == "gpu=2,currency=EUR"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Two jobs of two tasks for an hour, each with a GPU, a core and a GiB; of one, a task says which GPU it has."""
    for number in (1, 2):
        write(tmp_path / "home", job_id(number), begun(number, tags=("a", "b")))
    sample = Usage(gpus=(Gpu("0", "NVIDIA H100 80GB HBM3", 0.5),))
    used = [Used(BEGAN + 1000 + moment, TaskId("worker", 0), sample) for moment in (20, 30)]
    write(tmp_path / "home", job_id(1), [*used, *ended(1)])
    write(tmp_path / "home", job_id(2), ended(2))
    with Index(tmp_path / "index") as made:
        assert made.claim()
        Scanner(made, [uris.of_local(tmp_path / "home")]).scan()
        yield made


def listed(index: Index, priced: prices.Prices | None, **query: str) -> list[dict[str, Any]]:
    with index.reading() as connection:
        found: list[dict[str, Any]] = queries.page(connection, query, 0.0, prices=priced)["jobs"]
        return found


ONE, TWO = 4 + 2 + 2 * 0.5 + 2 * 0.25, 2 * 2 + 2 * 0.5 + 2 * 0.25


def test_what_jobs_cost(index: Index) -> None:
    assert [(row["id"], row["cost"]) for row in listed(index, PRICES, sort="-cost")] == [
        (job_id(1), ONE),
        (job_id(2), TWO),
    ]
    assert [row["cost"] for row in listed(index, PRICES, sort="cost")] == [TWO, ONE]
    with index.reading() as connection:
        directory = queries.newest_directory(connection, job_id(1))
        row = queries.row_of(connection, job_id(1), directory, 0.0, PRICES)
        by_tag = usage(connection, {"by": "tag"}, PRICES)
        by_user = usage(connection, {"user": "user1"}, PRICES)
    assert row is not None
    assert row["cost"] == ONE
    assert (by_tag["currency"], by_tag["total"]["cost"]) == ("EUR", ONE + TWO)
    assert [group["cost"] for group in by_tag["users"]] == [ONE + TWO] * 2
    assert [group["cost"] for group in by_user["users"]] == [ONE]
    assert csv_tables.usage_table(by_user).splitlines()[0].endswith(",cost (EUR)")
    rows = [{**row, "cluster": ""} for row in listed(index, PRICES)]
    assert csv_tables.jobs_table(rows, "", "EUR").splitlines()[0].endswith(",cost (EUR)")


def test_without_prices_nothing_is_said_of_costs(index: Index) -> None:
    rows = listed(index, None)
    assert {row["cost"] for row in rows} == {None}
    with pytest.raises(InvalidRequest):
        listed(index, None, sort="cost")
    with index.reading() as connection:
        found = usage(connection, {"by": "day"})
        none = usage(connection, {"user": "nobody"}, PRICES)["total"]["cost"]
    assert (found["currency"], found["total"]["cost"], none) == ("", None, 0.0)
    assert "cost" not in csv_tables.usage_table(found)
    assert "cost" not in csv_tables.jobs_table([{**row, "cluster": ""} for row in rows], "").splitlines()[0]
