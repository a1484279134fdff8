"""Tensors in the files of checkpoints, by their tables of contents: safetensors, NumPy, TensorFlow's bundles, torch.

Nothing is loaded and nothing of a file is run; `Tensor.pieces` reads the numbers of one, a block at a time.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from howdah.checkpoints import tensorflow_index
from howdah.eventfiles.errors import Unreadable
from howdah.eventfiles.proto import event_pb2
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

BLOCK = 1 << 20
MOST_HEADER = 100 << 20
MOST_TENSORS = 200_000
MOST_PICKLE, MOST_PART_PICKLE = 64 << 20, 1 << 20
BROKEN: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, pickle.PickleError, OSError, EOFError, RuntimeError, ValueError),
    *(ArithmeticError, AttributeError, LookupError, MemoryError, SyntaxError, TypeError),
)
"""What reading a file raises that is damaged: of the libraries that read it, and of what is made of wrong bytes."""
with contextlib.suppress(ImportError):  # of a Python that was built without it, whose zipfile knows none either
    import lzma

    BROKEN += (lzma.LZMAError,)
_NPY = b"\x93NUMPY"
_SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int64": 8,
    "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1,
    "complex64": 8, "complex128": 16, "string": 0,
}  # fmt: skip
_SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
# tensorflow/core/framework/types.proto
_TENSORFLOW = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32",
    23: "uint64",
}  # fmt: skip
_NUMPY = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}


@dataclass(frozen=True)
class TensorPart:
    """`count` numbers of a tensor, as a file of their own that is `length` bytes of `uri`, from `start`."""

    uri: str
    start: int
    length: int
    count: int


@dataclass(frozen=True)
class Tensor:
    """`offset` bytes into file `uri`, or into `member` of that zip archive; `length` bytes there, little-endian unless
    `big`; `why` is why its numbers can't be read, "" if they can. One that lies in `parts` has their numbers, though
    not in the order of its own."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    uri: str
    offset: int
    length: int
    member: str = ""
    big: bool = False
    why: str = ""
    parts: tuple[TensorPart, ...] = ()

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Bytes of each; 0 where that differs."""
        return _SIZES.get(self.dtype, 0)

    def pieces(self, fs: FileSystem, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """The bytes of some stretches of it (start, end), in blocks."""
        if self.parts:
            yield from self._of_parts(fs, spans)
            return
        with fs.open_read(self.uri) as file:
            yield from self._of_file(file, spans)

    def _of_file(self, file: Any, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        if not self.member:
            yield from _read(file, self.offset, spans)
            return
        try:
            with zipfile.ZipFile(file) as archive, archive.open(self.member) as inside:
                yield from _read(inside, self.offset, spans)
        except BROKEN as error:
            raise Unreadable(f"{self.uri}: {self.member}: {error or type(error).__name__}") from error

    def _of_parts(self, fs: FileSystem, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        begin = 0
        for part in self.parts:
            end = begin + part.count * self.width
            own = [(max(one, begin) - begin, min(other, end) - begin) for one, other in spans]
            own = [(one, other) for one, other in own if one < other]
            begin = end
            if own:
                with fs.open_read(part.uri) as file:
                    window = ByteWindow(file, part.start, part.length)
                    found = opened(window, f"{part.uri}: bytes from {part.start}", MOST_PART_PICKLE)
                    if len(found) != 1 or (found[0].dtype, found[0].count) != (self.dtype, part.count) or found[0].why:
                        raise Unreadable(f"{part.uri}: its bytes from {part.start} are not {part.count} {self.dtype}")
                    window.seek(0)
                    yield from found[0]._of_file(window, own)


class ByteWindow:
    """A stretch of a file as a file to read. No room is made for what it does not hold."""

    def __init__(self, file: Any, start: int, length: int) -> None:
        self._file, self._start, self._length, self._at = file, start, length, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, self._length)[whence]
        if at < 0:
            raise ValueError("a place before the beginning")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._length - self._at)
        self._file.seek(self._start + self._at)
        data: bytes = self._file.read(left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data


def _read(file: Any, offset: int, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    for start, end in spans:
        file.seek(offset + start)
        while start < end:
            data = file.read(min(BLOCK, end - start))
            if not data:
                raise Unreadable("the file ends before the tensor does")
            start += len(data)
            yield data


def read(fs: FileSystem, uri: str) -> list[Tensor]:
    """The tensors of a file, or of a TensorFlow checkpoint by its prefix.

    Raises:
        Unreadable: it is of no kind that is known here, or broken.
        StagingError, EngineUnavailable: it can't be read.
    """
    if fs.stat(uri) is None and fs.stat(uri + ".index") is not None:
        return _bundle(fs, uri)
    with fs.open_read(uri) as file:
        return opened(file, uri)


def opened(file: Any, uri: str, most: int = MOST_PICKLE) -> list[Tensor]:
    """Those of an open file, whose pickle has `most` bytes.

    Raises:
        Unreadable: it is of no kind that is known here, or broken.
    """
    start = file.read(8)
    file.seek(0)
    try:
        return _of_file(file, start, uri, most)
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise Unreadable(f"{uri}: is not what it begins as, or not all of it: {reason}") from error


def _of_file(file: BinaryIO, start: bytes, uri: str, most: int) -> list[Tensor]:
    if start.startswith(b"PK\x03\x04"):
        from howdah.eventfiles import torch_file

        with zipfile.ZipFile(file) as archive:
            if any(name.endswith(".npy") for name in archive.namelist()[:MOST_TENSORS]):
                return list(_npz(archive, uri))
            return torch_file.tensors(archive, uri, most)
    if start.startswith(_NPY):
        return [_npy(file, uri, "array")]
    if uri.endswith(".safetensors") or (len(start) == 8 and file.read(9)[8:] == b"{"):
        return list(_safetensors(file, uri))
    raise Unreadable(f"{uri}: contents are shown of safetensors, torch (zip), TensorFlow checkpoints, .npz and .npy")


def _safetensors(file: BinaryIO, uri: str) -> Iterator[Tensor]:
    """Eight bytes of length, a JSON header, the tensors (safetensors' README, Format)."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > MOST_HEADER:
        raise Unreadable(f"{uri}: a header of {length} bytes, {MOST_HEADER} are the most")
    header = json.loads(file.read(length))
    for name, entry in sorted(header.items())[:MOST_TENSORS]:
        if name != "__metadata__":
            start, end = map(int, entry["data_offsets"])
            kind = _SAFETENSORS.get(entry["dtype"], str(entry["dtype"])[:40])
            yield Tensor(name, kind, _shape(entry["shape"]), uri, 8 + length + start, end - start)


def _npz(archive: zipfile.ZipFile, uri: str) -> Iterator[Tensor]:
    for member in archive.namelist()[:MOST_TENSORS]:
        if member.endswith(".npy"):
            with archive.open(member) as file:
                yield _npy(file, uri, member.removesuffix(".npy"), member)


def _npy(file: Any, uri: str, name: str, member: str = "") -> Tensor:
    """NEP 1: magic, version, length of the header, a Python literal."""
    start = file.read(10)
    if not start.startswith(_NPY) or len(start) < 10:
        raise ValueError("no array of NumPy")
    extra = file.read(2) if start[6] > 1 else b""
    length = int.from_bytes(start[8:10] + extra, "little")
    if length > 1 << 16:
        raise ValueError("a header longer than any of NumPy's")
    header = ast.literal_eval(file.read(length).decode("latin-1"))
    code, shape = header["descr"], _shape(header["shape"])
    if not isinstance(code, str) or code[1:2] not in _NUMPY or not code[2:].isdigit():
        kind, why = str(code)[:40], "only numbers are read"
    else:
        size = int(code[2:])
        kind = "bool" if code[1] == "b" else f"{_NUMPY[code[1]]}{8 * size}"
        why = "" if kind in _SIZES else "only numbers are read"
    at = len(start) + len(extra) + length
    return Tensor(name, kind, shape, uri, at, math.prod(shape) * _SIZES.get(kind, 0), member, code[:1] == ">", why)


def _bundle(fs: FileSystem, prefix: str) -> list[Tensor]:
    """TensorFlow's: what a tensor is stands in the index, under its name (tensor_bundle.proto)."""
    found: list[Tensor] = []
    index = uris.build(*uris.split(prefix)[:2], uris.path(prefix) + ".index")
    entry = fs.stat(index)
    if entry is None or entry.size > MOST_HEADER:
        raise Unreadable(f"{index}: larger than any that TensorFlow writes")
    try:
        entries = dict(tensorflow_index.entries(fs.read_bytes(index)))
        header = event_pb2.BundleHeader.FromString(entries.pop(b"", b""))
        for key, value in list(entries.items())[:MOST_TENSORS]:
            one = event_pb2.BundleEntry.FromString(value)
            if one.slices:  # the whole of it stands here, its slices under keys of their own
                continue
            data = f"{uris.path(prefix)}.data-{one.shard_id:05d}-of-{max(1, header.num_shards):05d}"
            where = uris.build(*uris.split(prefix)[:2], data)
            shape = _shape([dim.size for dim in one.shape.dim])
            kind = _TENSORFLOW.get(one.dtype, f"type {one.dtype}")
            name = key.decode("utf-8", "backslashreplace")
            found.append(Tensor(name, kind, shape, where, one.offset, one.size, "", header.endianness == 1))
    except (tensorflow_index.IndexUnreadable, DecodeError, IndexError, ValueError) as error:
        raise Unreadable(f"{index}: {error or 'it is no index of a checkpoint'}") from error
    return found


def _shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    shape = tuple(int(size) for size in sizes)
    if any(size < 0 for size in shape) or len(shape) > 64:
        raise ValueError("a shape that no tensor has")
    return shape
