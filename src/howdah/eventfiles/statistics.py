"""Computes statistics of one tensor: minimum, maximum, mean, standard deviation, zeros, NaNs, infinities, a histogram.

The tensor is read twice, block by block, so memory is bounded. If the tensor is very large, evenly spread blocks
represent it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from operator import mul
from typing import Any

from howdah.eventfiles.errors import FileUnreadable
from howdah.eventfiles.tensor import Tensor
from howdah.eventfiles.tensor_files import BLOCK, iter_bytes
from howdah.storage.filesystem import FileSystem

BINS = 40
MAX_NUMBERS, MAX_NUMBERS_WITH_NUMPY = 4 << 20, 256 << 20
"""The most numbers that are read. NumPy takes a thirtieth of the time, but is not in a master's container."""
_ARRAY_TYPECODES = {
    "float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint64": "Q",
    "uint32": "I", "uint16": "H", "uint8": "B", "bool": "B",
}  # fmt: skip
_numpy: Any = None
with contextlib.suppress(ImportError):
    _numpy = importlib.import_module("numpy")


def statistics(fs: FileSystem, tensor: Tensor) -> dict[str, Any]:
    """Return the API's statistics of a tensor; `sampled` is how many numbers were read.

    Raises:
        FileUnreadable: the numbers cannot be read here.
    """
    if tensor.unreadable_reason or tensor.width == 0 or tensor.dtype.startswith("complex"):
        raise FileUnreadable(f"{tensor.name}: {tensor.unreadable_reason or f'no statistics of type {tensor.dtype}'}")
    if tensor.length != tensor.count * tensor.width:
        raise FileUnreadable(f"{tensor.name}: {tensor.length} bytes, but its shape has {tensor.count * tensor.width}")
    spans = _sampled_spans(tensor, MAX_NUMBERS_WITH_NUMPY if _numpy is not None else MAX_NUMBERS)
    summary = _Summary()
    for block in _blocks(fs, tensor, spans):
        summary.add(block)
    histogram = _HistogramBuilder(summary)
    for block in _blocks(fs, tensor, spans) if summary.finite else ():
        histogram.add(block)
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "count": tensor.count,
        "sampled": summary.count,
        **summary.answer(),
        "std": histogram.standard_deviation(),
        "histogram": histogram.answer(),
    }


def _sampled_spans(tensor: Tensor, max_numbers: int) -> list[tuple[int, int]]:
    """Return the byte spans to read: all, or as many blocks as are allowed, evenly spread."""
    if tensor.count <= max_numbers:
        return [(0, tensor.length)]
    count = max_numbers * tensor.width // BLOCK
    last = tensor.length // BLOCK - 1
    starts = [round(number * last / max(1, count - 1)) * BLOCK for number in range(count)]
    return [(start, start + BLOCK) for start in starts]


def _blocks(fs: FileSystem, tensor: Tensor, spans: list[tuple[int, int]]) -> Iterator[Any]:
    """Yield a tensor's numbers as arrays of NumPy if it is installed, else of Python."""
    left = b""
    for chunk in iter_bytes(fs, tensor, spans):
        data = left + chunk if left else chunk
        whole = len(data) // tensor.width * tensor.width
        left = data[whole:]
        yield numbers(data[:whole], tensor.dtype, tensor.big_endian)


def numbers(data: bytes, dtype: str, big_endian: bool = False) -> Any:
    """Return bytes as an array of floats or integers."""
    if dtype == "bfloat16":
        wide = bytearray(2 * len(data))
        first, second = (1, 0) if big_endian else (0, 1)
        wide[2::4], wide[3::4] = data[first::2], data[second::2]
        data, dtype, big_endian = bytes(wide), "float32", False
    if dtype == "float16" and _numpy is None:
        return array("f", struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 2}e", data))
    if dtype.startswith("float8"):
        table = _float8_values(dtype)
        found = array("f", [table[byte] for byte in data])
        return found if _numpy is None else _numpy.array(found)
    if _numpy is not None:
        kind = "uint8" if dtype == "bool" else dtype
        return _numpy.frombuffer(data, _numpy.dtype(kind).newbyteorder(">" if big_endian else "<"))
    typed = array(_ARRAY_TYPECODES[dtype], data)
    if big_endian != (sys.byteorder == "big"):
        typed.byteswap()
    return typed


def _float8_values(dtype: str) -> list[float]:
    """Return the 256 numbers of an eight-bit type (OCP 8-bit floating point: e4m3fn has no infinity, e5m2 is the upper
    half of a float16)."""
    if dtype == "float8_e5m2":
        return [struct.unpack("<e", bytes((0, byte)))[0] for byte in range(256)]
    found = []
    for byte in range(256):
        sign, exponent, fraction = -1.0 if byte & 128 else 1.0, byte >> 3 & 15, (byte & 7) / 8
        size = (1 + fraction) * 2.0 ** (exponent - 7) if exponent else fraction * 2**-6
        found.append(math.nan if byte & 127 == 127 else sign * size)
    return found


class _Summary:
    """Summarizes the numbers of the first reading."""

    def __init__(self) -> None:
        self.count = self.finite = self.zeros = self.nan = self.infinite = 0
        self.minimum, self.maximum, self.sum = math.inf, -math.inf, 0.0

    def add(self, block: Any) -> None:
        finite = _finite(block)
        self.count += len(block)
        self.finite += len(finite)
        if len(finite) < len(block):
            nan = int(_numpy.isnan(block).sum()) if _numpy is not None else sum(1 for value in block if value != value)
            self.nan += nan
            self.infinite += len(block) - len(finite) - nan
        if not len(finite):
            return
        if _numpy is not None:
            self.zeros += int((finite == 0).sum())
            minimum, maximum, total = float(finite.min()), float(finite.max()), float(finite.sum(dtype="float64"))
        else:
            self.zeros += finite.count(0)
            minimum, maximum, total = float(min(finite)), float(max(finite)), float(sum(finite))
        self.minimum, self.maximum = min(self.minimum, minimum), max(self.maximum, maximum)
        self.sum += total

    @property
    def mean(self) -> float:
        """Return the mean of the finite numbers."""
        return self.sum / self.finite if self.finite else 0.0

    def answer(self) -> dict[str, Any]:
        """Return the API's fields, null where the tensor has no finite number."""
        known = self.finite > 0
        return {
            "min": self.minimum if known else None,
            "max": self.maximum if known else None,
            "mean": self.mean if known and math.isfinite(self.mean) else None,
            "zeros": self.zeros,
            "nan": self.nan,
            "infinite": self.infinite,
        }


def _finite(block: Any) -> Any:
    if _numpy is not None:
        if block.dtype.kind != "f":
            return block
        good = _numpy.isfinite(block)
        return block if good.all() else block[good]
    if block.typecode not in "fd" or math.isfinite(sum(block)):
        return block
    return array(block.typecode, [value for value in block if math.isfinite(value)])


class _HistogramBuilder:
    """Counts the numbers of the second reading in bins of equal width, and sums their squared distances to the mean."""

    def __init__(self, summary: _Summary) -> None:
        self._summary, self._squares = summary, 0.0
        low, high = (summary.minimum, summary.maximum) if summary.finite else (0.0, 0.0)
        width = high / BINS - low / BINS
        self._edges = [low + number * width for number in range(BINS)] + [high] if high > low else [low, high]
        self._counts = [0] * (len(self._edges) - 1)

    def add(self, block: Any) -> None:
        finite, mean = _finite(block), self._summary.mean
        if _numpy is not None:
            distances = finite.astype("float64") - mean
            self._squares += float((distances * distances).sum())
            below = _numpy.searchsorted(_numpy.sort(finite), self._edges[1:-1], "left").tolist()
        else:
            distances = [value - mean for value in finite]
            self._squares += sum(map(mul, distances, distances))
            ordered = sorted(finite)
            below = [bisect_left(ordered, edge) for edge in self._edges[1:-1]]
        for number, (start, end) in enumerate(zip([0, *below], [*below, len(finite)], strict=True)):
            self._counts[number] += end - start

    def standard_deviation(self) -> float | None:
        """Return the deviation of the finite numbers, taken as a population."""
        if not self._summary.finite:
            return None
        found = math.sqrt(self._squares / self._summary.finite)
        return found if math.isfinite(found) else None

    def answer(self) -> list[list[float]]:
        """Return left edge, right edge and count of each bin."""
        if not self._summary.finite:
            return []
        edges = pairwise(self._edges)
        return [[left, right, count] for (left, right), count in zip(edges, self._counts, strict=True)]
