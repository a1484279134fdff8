"""The numbers of one tensor in a few: least, greatest, mean, deviation, zeros, what is no number, a histogram.

Blocks of it are read twice, so memory is bounded. Of a very large one, evenly spread blocks stand for all of it.
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
from operator import mul
from typing import Any

from howdah.eventfiles.errors import Unreadable
from howdah.eventfiles.tensors import BLOCK, Tensor
from howdah.storage.filesystem import FileSystem

BINS = 40
MOST, MOST_BY_NUMPY = 4 << 20, 256 << 20
"""Numbers that are read; with NumPy it takes a thirtieth of the time."""
_CODES = {
    "float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint64": "Q",
    "uint32": "I", "uint16": "H", "uint8": "B", "bool": "B",
}  # fmt: skip
_numpy: Any = None
with contextlib.suppress(ImportError):
    _numpy = importlib.import_module("numpy")


def statistics(fs: FileSystem, tensor: Tensor) -> dict[str, Any]:
    """What the API answers. `sampled` is how many numbers were read.

    Raises:
        Unreadable: its numbers can't be read here.
    """
    if tensor.why or tensor.width == 0 or tensor.dtype.startswith("complex"):
        raise Unreadable(f"{tensor.name}: {tensor.why or f'no statistics of type {tensor.dtype}'}")
    if tensor.length != tensor.count * tensor.width:
        raise Unreadable(f"{tensor.name}: {tensor.length} bytes, but its shape has {tensor.count * tensor.width}")
    spans = _spans(tensor, MOST_BY_NUMPY if _numpy is not None else MOST)
    total = _Total()
    for block in _blocks(fs, tensor, spans):
        total.add(block)
    bins = _Bins(total)
    for block in _blocks(fs, tensor, spans) if total.finite else ():
        bins.add(block)
    answer = {"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape, "count": tensor.count}
    return {**answer, "sampled": total.count, **total.answer(), "std": bins.deviation(), "histogram": bins.answer()}


def _spans(tensor: Tensor, most: int) -> list[tuple[int, int]]:
    """The bytes to read: all, or as many blocks as are allowed, evenly spread."""
    if tensor.count <= most:
        return [(0, tensor.length)]
    count = most * tensor.width // BLOCK
    last = tensor.length // BLOCK - 1
    starts = [round(number * last / max(1, count - 1)) * BLOCK for number in range(count)]
    return [(start, start + BLOCK) for start in starts]


def _blocks(fs: FileSystem, tensor: Tensor, spans: list[tuple[int, int]]) -> Iterator[Any]:
    """Its numbers: arrays of NumPy where that is, else of Python."""
    left = b""
    for piece in tensor.pieces(fs, spans):
        data = left + piece if left else piece
        whole = len(data) // tensor.width * tensor.width
        left = data[whole:]
        yield numbers(data[:whole], tensor.dtype, tensor.big)


def numbers(data: bytes, dtype: str, big: bool = False) -> Any:
    """Bytes as an array of floats or integers."""
    if dtype == "bfloat16":
        wide = bytearray(2 * len(data))
        first, second = (1, 0) if big else (0, 1)
        wide[2::4], wide[3::4] = data[first::2], data[second::2]
        data, dtype, big = bytes(wide), "float32", False
    if dtype == "float16" and _numpy is None:
        return array("f", struct.unpack(f"{'>' if big else '<'}{len(data) // 2}e", data))
    if dtype.startswith("float8"):
        table = _eighths(dtype)
        found = array("f", [table[byte] for byte in data])
        return found if _numpy is None else _numpy.array(found)
    if _numpy is not None:
        kind = "uint8" if dtype == "bool" else dtype
        return _numpy.frombuffer(data, _numpy.dtype(kind).newbyteorder(">" if big else "<"))
    typed = array(_CODES[dtype], data)
    if big != (sys.byteorder == "big"):
        typed.byteswap()
    return typed


def _eighths(dtype: str) -> list[float]:
    """The 256 numbers of a type of eight bits (OCP 8-bit floating point: e4m3fn has no infinity, e5m2 is half a
    float16)."""
    if dtype == "float8_e5m2":
        return [struct.unpack("<e", bytes((0, byte)))[0] for byte in range(256)]
    found = []
    for byte in range(256):
        sign, power, part = -1.0 if byte & 128 else 1.0, byte >> 3 & 15, byte & 7
        size = (
            math.nan if byte & 127 == 127 else (part / 8 * 2**-6 if not power else (1 + part / 8) * 2.0 ** (power - 7))
        )
        found.append(sign * size)
    return found


class _Total:
    """The first reading."""

    def __init__(self) -> None:
        self.count = self.finite = self.zeros = self.nan = self.infinite = 0
        self.least, self.greatest, self.sum = math.inf, -math.inf, 0.0

    def add(self, block: Any) -> None:
        kept = _finite(block)
        self.count += len(block)
        self.finite += len(kept)
        if len(kept) < len(block):
            nan = int(_numpy.isnan(block).sum()) if _numpy is not None else sum(1 for one in block if one != one)
            self.nan += nan
            self.infinite += len(block) - len(kept) - nan
        if not len(kept):
            return
        if _numpy is not None:
            self.zeros += int((kept == 0).sum())
            least, greatest, total = float(kept.min()), float(kept.max()), float(kept.sum(dtype="float64"))
        else:
            self.zeros += kept.count(0)
            least, greatest, total = float(min(kept)), float(max(kept)), float(sum(kept))
        self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        self.sum += total

    @property
    def mean(self) -> float:
        """Of the finite ones."""
        return self.sum / self.finite if self.finite else 0.0

    def answer(self) -> dict[str, Any]:
        """Nulls where there is no finite number."""
        known = self.finite > 0
        return {
            "min": self.least if known else None,
            "max": self.greatest if known else None,
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
    return array(block.typecode, [one for one in block if math.isfinite(one)])


class _Bins:
    """The second reading: how far from the mean, and how many in each of some equal stretches."""

    def __init__(self, total: _Total) -> None:
        self._total, self._squares = total, 0.0
        low, high = (total.least, total.greatest) if total.finite else (0.0, 0.0)
        width = high / BINS - low / BINS
        self._edges = [low + number * width for number in range(BINS)] + [high] if high > low else [low, high]
        self._counts = [0] * (len(self._edges) - 1)

    def add(self, block: Any) -> None:
        kept, mean = _finite(block), self._total.mean
        if _numpy is not None:
            apart = kept.astype("float64") - mean
            self._squares += float((apart * apart).sum())
            found = _numpy.searchsorted(_numpy.sort(kept), self._edges[1:-1], "left").tolist()
        else:
            distances = [one - mean for one in kept]
            self._squares += sum(map(mul, distances, distances))
            ordered = sorted(kept)
            found = [bisect_left(ordered, edge) for edge in self._edges[1:-1]]
        for number, (start, end) in enumerate(zip([0, *found], [*found, len(kept)], strict=True)):
            self._counts[number] += end - start

    def deviation(self) -> float | None:
        """Of all of them, not of a sample of them."""
        found = math.sqrt(self._squares / self._total.finite) if self._total.finite and self._squares >= 0 else None
        return found if found is not None and math.isfinite(found) else None

    def answer(self) -> list[list[float]]:
        """Left, right and count of each."""
        if not self._total.finite:
            return []
        return [
            [left, right, count] for left, right, count in zip(self._edges, self._edges[1:], self._counts, strict=False)
        ]
