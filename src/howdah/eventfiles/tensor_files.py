"""Reads tables of contents and numbers of checkpoint files: safetensors, NumPy, TensorFlow's bundles, torch, and shards
of these with an index.

No file is loaded as a whole and no code in a file is run; `iter_bytes` reads the numbers of a tensor block by block.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import pickle
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from howdah.checkpoints import tensorflow_index
from howdah.eventfiles import torch_file
from howdah.eventfiles.errors import FileUnreadable
from howdah.eventfiles.proto import event_pb2
from howdah.eventfiles.tensor import (
    MAX_HEADER_BYTES,
    MAX_PART_PICKLE_BYTES,
    MAX_PICKLE_BYTES,
    MAX_TENSORS,
    Tensor,
    checked_shape,
    width_of,
)
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

BLOCK = 1 << 20
SHARD_INDEX = ".index.json"
"""The end of the name of an index of shards: `*.safetensors.index.json`, `*.bin.index.json`."""
MAX_SHARDS = 1000
BROKEN: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, pickle.PickleError, OSError, EOFError, RuntimeError, ValueError),
    *(ArithmeticError, AttributeError, LookupError, MemoryError, SyntaxError, TypeError),
)
"""The errors that a damaged file causes, in the libraries that read it and in code that gets wrong bytes."""
with contextlib.suppress(ImportError):  # a Python built without lzma, whose zipfile cannot read such members either
    import lzma

    BROKEN += (lzma.LZMAError,)
_NPY = b"\x93NUMPY"
_SAFETENSORS_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
# tensorflow/core/framework/types.proto
_TENSORFLOW_TYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32",
    23: "uint64",
}  # fmt: skip
_NUMPY_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}


def read_tensors(fs: FileSystem, uri: str) -> list[Tensor]:
    """Return the tensors of a file, or of a TensorFlow checkpoint by its prefix.

    Raises:
        FileUnreadable: the file has no known format, or is broken.
        StagingError, EngineUnavailable: the file cannot be read.
    """
    if fs.stat(uri) is None and fs.stat(uri + ".index") is not None:
        return _read_bundle(fs, uri)
    with fs.open_read(uri) as file:
        return read_open_file(file, uri)


def read_open_file(file: Any, uri: str, max_pickle_bytes: int = MAX_PICKLE_BYTES) -> list[Tensor]:
    """Return the tensors of an open file; a torch file's pickle may have `max_pickle_bytes`.

    Raises:
        FileUnreadable: the file has no known format, or is broken.
    """
    start = file.read(8)
    file.seek(0)
    try:
        if start.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(file) as archive:
                if any(name.endswith(".npy") for name in archive.namelist()[:MAX_TENSORS]):
                    return list(_read_npz(archive, uri))
                return torch_file.read_archive(archive, uri, max_pickle_bytes)
        if start.startswith(_NPY):
            return [_read_npy(file, uri, "array")]
        if uri.endswith(".safetensors") or (len(start) == 8 and file.read(9)[8:] == b"{"):
            return list(_read_safetensors(file, uri))
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise FileUnreadable(f"{uri}: is not what it begins as, or not all of it: {reason}") from error
    raise FileUnreadable(
        f"{uri}: contents are shown of safetensors, torch (zip), TensorFlow checkpoints, .npz and .npy"
    )


def _read_safetensors(file: BinaryIO, uri: str) -> Iterator[Tensor]:
    """Read eight bytes of length and a JSON header; the tensors follow (safetensors' README, Format)."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER_BYTES:
        raise FileUnreadable(f"{uri}: a header of {length} bytes, {MAX_HEADER_BYTES} are the most")
    header = json.loads(file.read(length))
    for name, entry in sorted(header.items())[:MAX_TENSORS]:
        if name != "__metadata__":
            start, end = map(int, entry["data_offsets"])
            yield Tensor(
                name=name,
                dtype=_SAFETENSORS_TYPES.get(entry["dtype"], str(entry["dtype"])[:40]),
                shape=checked_shape(entry["shape"]),
                uri=uri,
                offset=8 + length + start,
                length=end - start,
            )


def _read_npz(archive: zipfile.ZipFile, uri: str) -> Iterator[Tensor]:
    for member in archive.namelist()[:MAX_TENSORS]:
        if member.endswith(".npy"):
            with archive.open(member) as file:
                yield _read_npy(file, uri, member.removesuffix(".npy"), member)


def _read_npy(file: Any, uri: str, name: str, member: str = "") -> Tensor:
    """Read NEP 1's header: magic, version, length, a Python literal."""
    start = file.read(10)
    if not start.startswith(_NPY) or len(start) < 10:
        raise ValueError("no array of NumPy")
    extra = file.read(2) if start[6] > 1 else b""
    length = int.from_bytes(start[8:10] + extra, "little")
    if length > 1 << 16:
        raise ValueError("a header longer than any of NumPy's")
    header = ast.literal_eval(file.read(length).decode("latin-1"))
    code, shape = header["descr"], checked_shape(header["shape"])
    dtype = str(code)[:40]
    is_number = isinstance(code, str) and code[1:2] in _NUMPY_KINDS and code[2:].isdigit()
    if is_number:
        dtype = "bool" if code[1] == "b" else f"{_NUMPY_KINDS[code[1]]}{8 * int(code[2:])}"
    width = width_of(dtype) if is_number else 0
    return Tensor(
        name=name,
        dtype=dtype,
        shape=shape,
        uri=uri,
        offset=len(start) + len(extra) + length,
        length=math.prod(shape) * width,
        member=member,
        big_endian=code[:1] == ">",
        unreadable_reason="" if width else "only numbers are read",
    )


def _read_bundle(fs: FileSystem, prefix: str) -> list[Tensor]:
    """Read the index of a TensorFlow checkpoint, which describes each tensor under its name (tensor_bundle.proto)."""
    found: list[Tensor] = []
    index = uris.build(*uris.split(prefix)[:2], uris.path(prefix) + ".index")
    status = fs.stat(index)
    if status is None or status.size > MAX_HEADER_BYTES:
        raise FileUnreadable(f"{index}: larger than any that TensorFlow writes")
    try:
        entries = dict(tensorflow_index.entries(fs.read_bytes(index)))
        header = event_pb2.BundleHeader.FromString(entries.pop(b"", b""))
        for key, value in list(entries.items())[:MAX_TENSORS]:
            entry = event_pb2.BundleEntry.FromString(value)
            if entry.slices:  # this entry describes the whole tensor; its slices have entries of their own
                continue
            data = f"{uris.path(prefix)}.data-{entry.shard_id:05d}-of-{max(1, header.num_shards):05d}"
            tensor = Tensor(
                name=key.decode("utf-8", "backslashreplace"),
                dtype=_TENSORFLOW_TYPES.get(entry.dtype, f"type {entry.dtype}"),
                shape=checked_shape(dim.size for dim in entry.shape.dim),
                uri=uris.build(*uris.split(prefix)[:2], data),
                offset=entry.offset,
                length=entry.size,
                big_endian=header.endianness == 1,
            )
            found.append(tensor)
    except (tensorflow_index.IndexUnreadable, DecodeError, IndexError, ValueError) as error:
        raise FileUnreadable(f"{index}: {error or 'it is not an index of a checkpoint'}") from error
    return found


def read_shards(fs: FileSystem, uri: str) -> tuple[set[str], list[Tensor]]:
    """Return the names of the files in an index of shards, and the tensors that it assigns to them. The index only says
    which files belong together; types, shapes and numbers are in the files themselves.

    Raises:
        FileUnreadable: `uri` is no such index, or a file is missing or lacks a tensor.
    """
    file_of = _read_shard_index(fs, uri)
    directory, found = uri.rpartition("/")[0], []
    files = set(file_of.values())
    for file in sorted(files):
        shard = f"{directory}/{file}"
        if fs.stat(shard) is None:
            raise FileUnreadable(f"{uri}: names {file}, which is not there")
        tensors = {tensor.name: tensor for tensor in read_tensors(fs, shard)}
        for name in (name for name in file_of if file_of[name] == file):
            if name not in tensors:
                raise FileUnreadable(f"{shard}: has no {name[:200]!r}, which {uris.name(uri)} says is there")
            found.append(tensors[name])
    return files, sorted(found, key=lambda tensor: tensor.name)


def _read_shard_index(fs: FileSystem, uri: str) -> dict[str, str]:
    """Return the file of each tensor, by the tensor's name."""
    status = fs.stat(uri)
    if status is None or status.size > MAX_HEADER_BYTES:
        raise FileUnreadable(f"{uri}: is gone, or larger than {MAX_HEADER_BYTES} bytes")
    try:
        table = json.loads(fs.read_bytes(uri))["weight_map"]
        file_of = {str(name): str(file) for name, file in list(table.items())[:MAX_TENSORS]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileUnreadable(f"{uri}: is not an index of a checkpoint: {error}") from error
    files = set(file_of.values())
    wrong = next((name for name in files if posixpath.basename(name) != name or name in ("", ".", "..")), None)
    if wrong is not None or len(files) > MAX_SHARDS:
        note = "" if wrong is None else f", one not beside it: {wrong[:100]!r}"
        raise FileUnreadable(f"{uri}: names {len(files)} files{note}")
    return file_of


def iter_bytes(fs: FileSystem, tensor: Tensor, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the bytes of some spans (start, end) of a tensor's numbers, in blocks."""
    if not tensor.parts:
        with fs.open_read(tensor.uri) as file:
            yield from _iter_file(file, tensor, spans)
        return
    begin = 0
    for part in tensor.parts:
        end = begin + part.count * tensor.width
        inside = [(max(first, begin) - begin, min(last, end) - begin) for first, last in spans]
        inside = [(first, last) for first, last in inside if first < last]
        begin = end
        if inside:
            with fs.open_read(part.uri) as file:
                window = ByteWindow(file, part.start, part.length)
                found = read_open_file(window, f"{part.uri}: bytes from {part.start}", MAX_PART_PICKLE_BYTES)
                kinds = [(each.dtype, each.count, each.unreadable_reason) for each in found]
                if kinds != [(tensor.dtype, part.count, "")]:
                    raise FileUnreadable(f"{part.uri}: its bytes from {part.start} are not {part.count} {tensor.dtype}")
                window.seek(0)
                yield from _iter_file(window, found[0], inside)


def _iter_file(file: Any, tensor: Tensor, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    if not tensor.member:
        yield from _iter_spans(file, tensor.offset, spans)
        return
    try:
        with zipfile.ZipFile(file) as archive, archive.open(tensor.member) as member:
            yield from _iter_spans(member, tensor.offset, spans)
    except BROKEN as error:
        raise FileUnreadable(f"{tensor.uri}: {tensor.member}: {error or type(error).__name__}") from error


def _iter_spans(file: Any, offset: int, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    for start, end in spans:
        file.seek(offset + start)
        while start < end:
            data = file.read(min(BLOCK, end - start))
            if not data:
                raise FileUnreadable("the file ends before the tensor does")
            start += len(data)
            yield data


class ByteWindow:
    """A span of a file as a readable file, which allocates no memory for bytes that the file does not have."""

    def __init__(self, file: Any, start: int, length: int) -> None:
        self._file, self._start, self._length, self._position = file, start, length, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        position = offset + (0, self._position, self._length)[whence]
        if position < 0:
            raise ValueError("a position before the beginning")
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._length - self._position)
        self._file.seek(self._start + self._position)
        data: bytes = self._file.read(left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data
