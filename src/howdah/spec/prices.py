"""The prices of resources, as an administrator writes them: `gpu=2.50, gpu:H200=3.90, cpu=0.04, memory=0.005,
currency=EUR`. Pure."""

from __future__ import annotations

import math
import re
from typing import Dict, Optional

from howdah.spec.values import dataclass

_CURRENCY = re.compile(r"[^\W\d_]{1,8}|[$€£¥]")
_ALLOWED = (
    "must be prices of an hour, such as gpu=2.50, gpu:H200=3.90, cpu=0.04, memory=0.005 (of a GiB), and currency=EUR"
)


@dataclass(frozen=True)
class Prices:
    """Prices for an hour. A resource without a price costs nothing."""

    currency: str
    """The currency of all prices, as costs show it."""
    gpu: float
    """The price of an hour of a GPU whose type has no price of its own."""
    gpu_types: Dict[str, float]
    """The price of an hour of a GPU, by a part of its model's name in lower case."""
    cpu: float
    """The price of an hour of a virtual core."""
    memory: float
    """The price of an hour of a GiB of memory."""

    def of_gpu(self, model: str) -> float:
        """Return the price of a GPU of this model: that of the longest type that occurs in the model's name."""
        named = [name for name in self.gpu_types if name in model.lower()]
        return self.gpu_types[max(named, key=len)] if named else self.gpu


def parse(text: str) -> Optional[Prices]:
    """Return the prices in a text; None for "".

    Raises:
        ValueError: `text` has no such form; the message says which it must have.
    """
    if not text.strip():
        return None
    numbers: Dict[str, float] = {}
    types: Dict[str, float] = {}
    currency = ""
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        kind, colon, model = name.partition(":")
        if name == "currency" and not currency and _CURRENCY.fullmatch(value):
            currency = value
        elif kind == "gpu" and colon and model.strip() and model.strip().lower() not in types:
            types[model.strip().lower()] = _price(value)
        elif name in ("gpu", "cpu", "memory") and name not in numbers:
            numbers[name] = _price(value)
        else:
            raise ValueError(_ALLOWED)
    if not currency or not (numbers or types):
        raise ValueError(_ALLOWED)
    return Prices(
        currency=currency,
        gpu=numbers.get("gpu", 0.0),
        gpu_types=types,
        cpu=numbers.get("cpu", 0.0),
        memory=numbers.get("memory", 0.0),
    )


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < 1e9:
        raise ValueError(_ALLOWED)
    return price
