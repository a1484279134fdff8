"""One value as JSON: dates and times are ISO texts, decimals texts (no digit is lost), bytes base64; what JSON cannot
write (NaN, infinity) is null."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any


def dumps(value: Any) -> str:
    """Without spaces or line ends."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # NaN or infinity, somewhere within
        return json.dumps(_finite(value), default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value
