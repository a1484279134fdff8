"""The cost of jobs: an SQL expression over the index's rows, made from the present prices of the server.

The rule: the index has hours, and no cost, so that other prices need no other index.
"""

from __future__ import annotations

import functools
import sqlite3

from howdah.spec.prices import Prices

_NOTHING = "NULL"


def cost_of_job(connection: sqlite3.Connection, prices: Prices | None) -> str:
    """Return the SQL expression of the cost of a row of `job`: of attempts that have ended; NULL without prices."""
    if prices is None:
        return _NOTHING
    connection.create_function("gpu_price", 1, functools.lru_cache(maxsize=1000)(prices.of_gpu), deterministic=True)
    gpus = "coalesce((SELECT sum(hours * gpu_price(model)) FROM gpu_use WHERE gpu_use.job = job.number), 0)"
    return f"({gpus} + cpu_hours * {prices.cpu!r} + memory_gib_hours * {prices.memory!r})"
