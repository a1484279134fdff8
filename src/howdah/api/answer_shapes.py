"""Finds the shape of an answer by the name that its route gives."""

from __future__ import annotations

from typing import Any

from howdah.api import curve_schemas, history_schemas, schemas


def find_shape(name: str) -> Any:
    """Return the type of this name in the modules of shapes; None for an answer that is no JSON."""
    found = (getattr(module, name, None) for module in (schemas, curve_schemas, history_schemas))
    return next(filter(None, found), None)
