"""What torch.save has written, without torch: the pickle in the archive is followed, but nothing it names is called.

Every class or function that it names becomes an empty stand-in; the few that make tensors of storages are ours, and
keep only what they are told. The unpickler is the one in Python, whose memory is bounded by the length of the pickle.
"""

from __future__ import annotations

import io
import math
import pickle
import posixpath
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from howdah.eventfiles.errors import Unreadable
from howdah.eventfiles.tensors import MOST_PICKLE, MOST_TENSORS, Tensor, TensorPart

MOST_DEPTH = 30
MOST_PARTS = 1_000_000
_SHARD = re.compile(r"[\w-][\w.-]{0,200}")
_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "Float8_e4m3fnStorage": "float8_e4m3fn", "Float8_e5m2Storage": "float8_e5m2",
}  # fmt: skip
_DTYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}


@dataclass(frozen=True)
class _Named:
    """A class or function that the pickle names."""

    name: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def tensors(archive: zipfile.ZipFile, uri: str, most: int = MOST_PICKLE) -> list[Tensor]:
    """Those of an archive of torch.save, named by the keys that lead to them. Its pickle has `most` bytes."""
    members = archive.namelist()[:MOST_TENSORS]
    found = [name for name in members if name == "data.pkl" or name.endswith("/data.pkl")]
    if not found:
        raise Unreadable(f"{uri}: a zip archive, but neither of torch nor of NumPy")
    info = archive.getinfo(found[0])
    if info.file_size > most:
        raise Unreadable(f"{uri}: a table of contents of {info.file_size} bytes, {most} are the most")
    with archive.open(info) as file:
        content = file.read(most)
    base = found[0].removesuffix("data.pkl")
    big = f"{base}byteorder" in members and archive.read(f"{base}byteorder")[:3] == b"big"
    return [_tensor(name, one, uri, f"{base}data/{one.storage.key}", big) for name, one in _walk(load(content))]


def sharded(content: bytes, uri: str) -> list[Tensor]:
    """Those that a `.metadata` of torch.distributed.checkpoint names (its Metadata, TensorStorageMetadata), with their
    parts in the files beside it (MetadataIndex, _StorageInfo).

    Raises:
        Unreadable: it is none.
    """
    told = _told(load(content))
    table, left, found = told.get("state_dict_metadata"), MOST_PARTS, []
    try:
        places = _places(told.get("storage_data"), posixpath.dirname(uri))
        for name, one in list(table.items())[:MOST_TENSORS] if isinstance(table, dict) else ():
            entry = _told(one)
            if isinstance(entry.get("size"), tuple):
                found.append(_in_parts(str(name)[:500], entry, places.get(name, {}), uri, left))
                left -= len(found[-1].parts)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"{uri}: is no table of contents of shards: {error}") from error
    return found


def _in_parts(name: str, entry: dict[Any, Any], places: dict[Any, TensorPart | str], uri: str, most: int) -> Tensor:
    shape = _shape(entry["size"])
    named = (each.name for each in islice(_all(entry.get("properties")), 100) if isinstance(each, _Named))
    kind = next(named, "")
    kind = _DTYPES.get(kind, kind)
    one = Tensor(name, kind, shape, uri, 0, 0)
    parts, why = _parts_of(entry, places, one.count, most)
    return replace(one, length=one.count * one.width, parts=parts, why=why)


def _parts_of(
    entry: dict[Any, Any], places: dict[Any, TensorPart | str], count: int, most: int
) -> tuple[tuple[TensorPart, ...], str]:
    """Where the chunks of a tensor lie; none, and why that is of no use, unless they are all of it."""
    chunks = entry.get("chunks")
    if not isinstance(chunks, list) or not chunks or len(chunks) > most:
        return (), "nobody knows in which parts it lies, or they are too many"
    parts: list[TensorPart] = []
    for chunk in map(_told, chunks):
        offsets, sizes = chunk.get("offsets"), chunk.get("sizes")
        place = places.get(offsets, "its table of contents does not say where") if isinstance(offsets, tuple) else ""
        if not isinstance(place, TensorPart) or not isinstance(sizes, tuple):
            return (), f"part {len(parts)} of {len(chunks)}: {place or 'it has no shape'}"
        parts.append(replace(place, count=math.prod(_shape(sizes))))
    if sum(part.count for part in parts) != count:
        return (), "its parts are not as large as itself"
    return tuple(parts), ""


def _places(stored: Any, folder: str) -> dict[Any, dict[Any, TensorPart | str]]:
    """By name and offset: a part of a file, or why there is none. A part that all have is written once."""
    found: dict[Any, dict[Any, TensorPart | str]] = {}
    for key, value in stored.items() if isinstance(stored, dict) else ():
        index, place = _told(key), _told(value)
        name, offset = index.get("fqn"), index.get("offset")
        if isinstance(name, str) and isinstance(offset, tuple):
            found.setdefault(name, {})[offset] = _place(place, folder)
    return found


def _place(place: dict[Any, Any], folder: str) -> TensorPart | str:
    path, start, length = (place.get(name) for name in ("relative_path", "offset", "length"))
    if place.get("transform_descriptors"):
        return "it is written by an extension of torch.distributed.checkpoint, such as one that compresses"
    if not isinstance(path, str) or not _SHARD.fullmatch(path):
        return "it is in no file of this directory"
    if not all(isinstance(one, int) and 0 <= one < 1 << 62 for one in (start, length)):
        return "its place in the file is none"
    assert isinstance(start, int)
    assert isinstance(length, int)
    return TensorPart(f"{folder}/{path}", start, length, 0)


def _told(value: Any) -> dict[Any, Any]:
    """The attributes that an object was given."""
    held = getattr(value, "held", ())
    return next((one for one in held if isinstance(one, dict)), {})


def _all(value: Any, depth: int = 4) -> Iterator[Any]:
    yield value
    if depth and (isinstance(value, (list, tuple)) or hasattr(value, "held")):
        for _, part in _parts(value):
            yield from _all(part, depth - 1)


def load(content: bytes) -> Any:
    """The value of a pickle, of plain values and stand-ins.

    Raises:
        Unreadable: it is none that torch writes.
    """
    try:
        return _Unpickler(io.BytesIO(content)).load()
    except Exception as error:  # a hostile one may fail in any way, but it fails here
        raise Unreadable(f"its table of contents can't be followed: {type(error).__name__}: {error}") from error


def _tensor(name: str, one: _Tensor, uri: str, member: str, big: bool) -> Tensor:
    count = math.prod(one.shape)
    spread = 1 + sum((size - 1) * step for size, step in zip(one.shape, one.stride, strict=True)) if count else 0
    why = "" if spread == count else "it is a view that leaves numbers of its storage out, or shows some twice"
    width = Tensor(name, one.storage.dtype, (), uri, 0, 0).width
    return Tensor(name, one.storage.dtype, one.shape, uri, one.offset * width, count * width, member, big, why)


def _walk(value: Any) -> Iterator[tuple[str, _Tensor]]:
    """Every tensor once, by the shortest path there."""
    seen: set[int] = set()
    level: list[tuple[str, Any]] = [("", value)]
    found = 0
    for _ in range(MOST_DEPTH):
        below: list[tuple[str, Any]] = []
        for name, one in level:
            if id(one) in seen:
                continue
            if isinstance(one, _Tensor):
                seen.add(id(one))
                found += 1
                if found > MOST_TENSORS:
                    return
                yield name or "tensor", one
            elif isinstance(one, (dict, list, tuple)) or hasattr(one, "held"):
                seen.add(id(one))
                below += [(_joined(name, key), part) for key, part in _parts(one)]
        level = below


def _joined(name: str, key: str) -> str:
    """A module's own tables are left out, so that what is in it has the names of its state dict."""
    key = "" if key in ("_modules", "_parameters", "_buffers") else key
    return f"{name}.{key}" if name and key else name or key


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key)[:500] if isinstance(key, (str, int)) else "?", part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(number), part) for number, part in enumerate(value))
    else:
        yield from (("", part) for part in value.held)


_DISPATCH: dict[int, Any] = dict(getattr(pickle, "_Unpickler").dispatch)  # noqa: B009


class _Unpickler(pickle._Unpickler):  # type: ignore[misc,name-defined,unused-ignore]
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, encoding="utf-8")
        self._stand_in = _stand_in()

    read: Callable[[int], bytes]
    append: Callable[[Any], None]

    def _load_bytearray8(self) -> None:
        """Python's own makes room for as many bytes as the pickle says before it looks whether it has them."""
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(length)))

    dispatch: ClassVar[dict[int, Any]] = {**_DISPATCH, pickle.BYTEARRAY8[0]: _load_bytearray8}

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("torch") and name in _STORAGES:
            return _Named(name)
        if module == "torch._utils" and name in _BUILDERS:
            return _BUILDERS[name]
        if (module, name) == ("collections", "OrderedDict"):
            return self._stand_in.mapping
        if module == "torch" and name == "Size":
            return _shape
        if module == "torch":
            return _Named(name)  # a dtype, most of the time
        return self._stand_in.one

    def persistent_load(self, told: Any) -> _Storage:
        """("storage", class, key, device, count), as torch/serialization.py has it."""
        _, kind, key, *_ = told
        name = kind.name if isinstance(kind, _Named) else ""
        if name == "UntypedStorage":
            name = "ByteStorage"
        return _Storage(str(key), _STORAGES.get(name, _DTYPES.get(name, name)))


class _Kinds:
    """The stand-ins of one pickle: what it does to them, it does to its own."""

    one: Any
    mapping: Any


def _stand_in() -> _Kinds:
    class One:
        """Any object of any class; takes what it is made of and does nothing."""

        held: list[Any]

        def __new__(cls, *values: Any, **named: Any) -> One:
            made = super().__new__(cls)
            made.held = [*values, *named.values()]
            return made

        def __init__(self, *values: Any, **named: Any) -> None:
            """Taken by `__new__`, by which alone some are made."""

        def __setstate__(self, state: Any) -> None:
            self.held.append(state)

        def append(self, value: Any) -> None:
            self.held.append(value)

        def extend(self, values: Any) -> None:
            self.held.extend(values)

        def __setitem__(self, key: Any, value: Any) -> None:
            self.held.append({key: value} if isinstance(key, (str, int)) else value)

    class Mapping(dict[Any, Any]):
        """An OrderedDict; attributes of it (`_metadata` of a state dict) are left out."""

        def __setstate__(self, state: Any) -> None:
            pass

    kinds = _Kinds()
    kinds.one, kinds.mapping = One, Mapping
    return kinds


def _shape(sizes: Any = ()) -> tuple[int, ...]:
    found = tuple(sizes)
    if len(found) > 64 or not all(isinstance(size, int) and 0 <= size < 1 << 62 for size in found):
        raise ValueError("a shape that no tensor has")
    return found


def _rebuilt(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or not isinstance(offset, int) or not 0 <= offset < 1 << 62:
        raise ValueError("a tensor without a storage")
    sizes, steps = _shape(shape), _shape(stride)
    if len(sizes) != len(steps):
        raise ValueError("a shape that no tensor has")
    return _Tensor(storage, offset, sizes, steps)


def _rebuilt_typed(storage: Any, offset: Any, shape: Any, stride: Any, *rest: Any) -> _Tensor:
    """`_rebuild_tensor_v3`: (…, requires_grad, hooks, dtype, metadata), over a storage of bytes."""
    kind = rest[2].name if len(rest) > 2 and isinstance(rest[2], _Named) else ""
    typed = _Storage(storage.key, _DTYPES.get(kind, kind)) if isinstance(storage, _Storage) and kind else storage
    return _rebuilt(typed, offset, shape, stride)


def _parameter(data: Any, *_: Any) -> Any:
    return data


_BUILDERS = {
    "_rebuild_tensor": _rebuilt,
    "_rebuild_tensor_v2": _rebuilt,
    "_rebuild_tensor_v3": _rebuilt_typed,
    "_rebuild_parameter": _parameter,
    "_rebuild_parameter_with_state": _parameter,
}
