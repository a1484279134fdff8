"""Writes one value as JSON: dates and times are ISO texts, decimals are texts (no digit is lost), bytes are base64, and
numbers that JSON cannot express (NaN, infinity) are null.
"""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any


def dumps(value: Any) -> str:
    """Return a value as JSON without spaces or line ends."""
    try:
        return json.dumps(value, default=_json_value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # it has NaN or infinity
        return json.dumps(_finite_or_null(value), default=_json_value, ensure_ascii=False, separators=(",", ":"))


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _finite_or_null(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: _finite_or_null(each) for name, each in value.items()}
    return [_finite_or_null(each) for each in value] if isinstance(value, (list, tuple)) else value
