"""Tests the engine of YARN by the engines' contract."""

from __future__ import annotations

from howdah.testing.engine_contract import EngineContract


class TestYarnEngine(EngineContract):
    name = "yarn"
