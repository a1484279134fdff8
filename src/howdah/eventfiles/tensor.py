"""A tensor of a checkpoint as its table of contents describes it, and the limits for such tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from howdah.spec.values import dataclass

MAX_HEADER_BYTES = 100 << 20
MAX_TENSORS = 200_000
MAX_PICKLE_BYTES, MAX_PART_PICKLE_BYTES = 64 << 20, 1 << 20
_WIDTHS = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int64": 8,
    "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1,
    "complex64": 8, "complex128": 16, "string": 0,
}  # fmt: skip


@dataclass(frozen=True)
class TensorPart:
    """Some numbers of a tensor, stored as a file of their own inside another file."""

    uri: str
    start: int
    """The byte of `uri` at which the inner file begins."""
    length: int
    """The bytes of the inner file."""
    count: int
    """How many numbers the part has."""


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor, and the place of its numbers."""

    name: str
    dtype: str
    """NumPy's or PyTorch's name of the type, such as float32 or bfloat16."""
    shape: tuple[int, ...]
    uri: str
    offset: int = 0
    """The byte at which the numbers begin, in file `uri` or in its `member`."""
    length: int = 0
    """The bytes of all numbers."""
    member: str = ""
    """The member of the zip archive `uri` that has the numbers; "" if `uri` is no archive."""
    big_endian: bool = False
    unreadable_reason: str = ""
    """Why the numbers cannot be read; "" if they can."""
    parts: tuple[TensorPart, ...] = ()
    """The parts that contain the numbers of a tensor in several files, in another order than the tensor's."""

    @property
    def count(self) -> int:
        """Return how many numbers the tensor has."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Return the bytes of one number; 0 for a type that is unknown or has no fixed width."""
        return width_of(self.dtype)


def width_of(dtype: str) -> int:
    """Return the bytes of one number of a type; 0 for a type that is unknown or has no fixed width."""
    return _WIDTHS.get(dtype, 0)


def checked_shape(sizes: Iterable[Any] = ()) -> tuple[int, ...]:
    """Return the sizes as a shape.

    Raises:
        ValueError: no tensor has this shape.
    """
    shape = tuple(sizes)
    if len(shape) > 64 or not all(isinstance(size, int) and 0 <= size < 1 << 62 for size in shape):
        raise ValueError("a shape that no tensor has")
    return shape
