"""Stands in for pyspark, which unit tests do without: every name is a class that takes all arguments."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

OF_SPARK = ("", ".accumulators", ".ml", ".ml.functions", ".ml.linalg", ".ml.param", ".ml.param.shared", ".ml.util")
OF_SPARK += (".resource", ".sql", ".sql.datasource", ".sql.types")
IMPORTERS = (
    "howdah.engines.spark.driver",
    *(f"howdah.spark.{name}" for name in ("application_job", "cluster", "feeding", "distributor")),
)
IMPORTERS += ("howdah.spark.estimator", "howdah.spark.tfrecords", "howdah.spark.tfrecord_source")


class _Class(type):
    def __getitem__(cls, _item: Any) -> Any:
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_named: None


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Class(name, (), {"__init__": lambda self, *_arguments, **_named: None})
        setattr(self, name, made)
        return made


def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let howdah's modules for Spark import the stand-in, during one test; return it."""
    for name in OF_SPARK:
        monkeypatch.setitem(sys.modules, f"pyspark{name}", _Module(f"pyspark{name}"))
    for name in IMPORTERS:  # imported anew, and forgotten after the test
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        del sys.modules[name]
    pyspark: Any = sys.modules["pyspark"]
    pyspark.cloudpickle, pyspark.InheritableThread = cloudpickle, threading.Thread
    pyspark.keyword_only = lambda function: function
    return pyspark
