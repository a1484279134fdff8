"""Reads files of torch.save without torch: it follows the pickle in the archive, but calls nothing that the pickle
names.

Every class or function that the pickle names becomes an empty stand-in. The few functions that make tensors from
storages are replaced by functions below, which only keep their arguments. The unpickler is the Python implementation of
Python's own, whose memory is bounded by the length of the pickle.
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
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

from howdah.eventfiles.errors import FileUnreadable
from howdah.eventfiles.tensor import MAX_PICKLE_BYTES, MAX_TENSORS, Tensor, TensorPart, checked_shape, width_of
from howdah.spec.values import dataclass

MAX_DEPTH = 30
MAX_PARTS = 1_000_000
_SHARD_NAME = re.compile(r"[\w-][\w.-]{0,200}")
_STORAGE_TYPES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "Float8_e4m3fnStorage": "float8_e4m3fn", "Float8_e5m2Storage": "float8_e5m2",
}  # fmt: skip
_DTYPE_ALIASES = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
}  # fmt: skip


@dataclass(frozen=True)
class _GlobalName:
    """A class, function or dtype of torch that the pickle names."""

    name: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str


@dataclass(frozen=True)
class _StorageView:
    """A tensor as the pickle describes it: a part of a storage; offset and strides count numbers, not bytes."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def read_archive(archive: zipfile.ZipFile, uri: str, max_pickle_bytes: int = MAX_PICKLE_BYTES) -> list[Tensor]:
    """Return the tensors of an archive of torch.save, named by the keys that lead to them.

    Raises:
        FileUnreadable: the archive is not one of torch, or its pickle is too long or broken.
    """
    members = archive.namelist()[:MAX_TENSORS]
    pickles = [name for name in members if name == "data.pkl" or name.endswith("/data.pkl")]
    if not pickles:
        raise FileUnreadable(f"{uri}: a zip archive, but neither of torch nor of NumPy")
    info = archive.getinfo(pickles[0])
    if info.file_size > max_pickle_bytes:
        raise FileUnreadable(f"{uri}: a table of contents of {info.file_size} bytes, {max_pickle_bytes} are the most")
    with archive.open(info) as file:
        content = file.read(max_pickle_bytes)
    base = pickles[0].removesuffix("data.pkl")
    big_endian = f"{base}byteorder" in members and archive.read(f"{base}byteorder")[:3] == b"big"
    return [_tensor(name, view, uri, base, big_endian) for name, view in _named_views(load_pickle(content))]


def _tensor(name: str, view: _StorageView, uri: str, base: str, big_endian: bool) -> Tensor:
    count, width = math.prod(view.shape), width_of(view.storage.dtype)
    spread = 1 + sum((size - 1) * step for size, step in zip(view.shape, view.stride, strict=True)) if count else 0
    is_dense = spread == count
    return Tensor(
        name=name,
        dtype=view.storage.dtype,
        shape=view.shape,
        uri=uri,
        offset=view.offset * width,
        length=count * width,
        member=f"{base}data/{view.storage.key}",
        big_endian=big_endian,
        unreadable_reason=(
            "" if is_dense else "it is a view that leaves numbers of its storage out, or shows some twice"
        ),
    )


def _named_views(value: Any) -> Iterator[tuple[str, _StorageView]]:
    """Yield every tensor once, with the shortest path of keys that leads to it."""
    seen: set[int] = set()
    level: list[tuple[str, Any]] = [("", value)]
    count = 0
    for _ in range(MAX_DEPTH):
        next_level: list[tuple[str, Any]] = []
        for name, each in level:
            if id(each) in seen:
                continue
            if isinstance(each, _StorageView):
                seen.add(id(each))
                count += 1
                if count > MAX_TENSORS:
                    return
                yield name or "tensor", each
            elif _has_children(each):
                seen.add(id(each))
                next_level += [(_join(name, key), child) for key, child in _children(each)]
        level = next_level


def _join(name: str, key: str) -> str:
    """Join two names without the names of a module's own tables, so that tensors are named as in a state dict."""
    key = "" if key in ("_modules", "_parameters", "_buffers") else key
    return f"{name}.{key}" if name and key else name or key


def _has_children(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) or hasattr(value, "arguments")


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key)[:500] if isinstance(key, (str, int)) else "?", child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(number), child) for number, child in enumerate(value))
    else:
        yield from (("", child) for child in value.arguments)


def read_distributed_metadata(content: bytes, uri: str) -> list[Tensor]:
    """Return the tensors that a `.metadata` of torch.distributed.checkpoint names (its Metadata,
    TensorStorageMetadata), with their parts in the files beside `uri` (MetadataIndex, _StorageInfo).

    Raises:
        FileUnreadable: `content` is no such metadata.
    """
    metadata = _attributes(load_pickle(content))
    table, parts_left, found = metadata.get("state_dict_metadata"), MAX_PARTS, []
    try:
        stored = _stored_parts(metadata.get("storage_data"), posixpath.dirname(uri))
        for name, value in list(table.items())[:MAX_TENSORS] if isinstance(table, dict) else ():
            entry = _attributes(value)
            if isinstance(entry.get("size"), tuple):
                found.append(_tensor_in_parts(str(name)[:500], entry, stored.get(name, {}), uri, parts_left))
                parts_left -= len(found[-1].parts)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileUnreadable(f"{uri}: is not a table of contents of shards: {error}") from error
    return found


def _tensor_in_parts(
    name: str, entry: dict[Any, Any], stored: dict[Any, TensorPart | str], uri: str, max_parts: int
) -> Tensor:
    nested = islice(_nested_values(entry.get("properties")), 100)
    dtype = next((each.name for each in nested if isinstance(each, _GlobalName)), "")
    tensor = Tensor(name=name, dtype=_DTYPE_ALIASES.get(dtype, dtype), shape=checked_shape(entry["size"]), uri=uri)
    parts, reason = _find_parts(entry, stored, tensor.count, max_parts)
    return replace(tensor, length=tensor.count * tensor.width, parts=parts, unreadable_reason=reason)


def _find_parts(
    entry: dict[Any, Any], stored: dict[Any, TensorPart | str], count: int, max_parts: int
) -> tuple[tuple[TensorPart, ...], str]:
    """Return the places of the chunks of a tensor; or no parts and a reason, unless the chunks are the whole tensor."""
    chunks = entry.get("chunks")
    if not isinstance(chunks, list) or not chunks or len(chunks) > max_parts:
        return (), "the list of its parts is missing or too long"
    parts: list[TensorPart] = []
    for chunk in map(_attributes, chunks):
        offsets, sizes = chunk.get("offsets"), chunk.get("sizes")
        part = stored.get(offsets, "its table of contents does not say where") if isinstance(offsets, tuple) else ""
        if not isinstance(part, TensorPart) or not isinstance(sizes, tuple):
            return (), f"part {len(parts)} of {len(chunks)}: {part or 'it has no shape'}"
        parts.append(replace(part, count=math.prod(checked_shape(sizes))))
    if sum(part.count for part in parts) != count:
        return (), "its parts are not as large as itself"
    return tuple(parts), ""


def _stored_parts(storage_data: Any, directory: str) -> dict[Any, dict[Any, TensorPart | str]]:
    """Return by name and offset a part of a file, or the reason why there is none. A part that all ranks have is
    written once."""
    found: dict[Any, dict[Any, TensorPart | str]] = {}
    for key, value in storage_data.items() if isinstance(storage_data, dict) else ():
        index = _attributes(key)
        name, offset = index.get("fqn"), index.get("offset")
        if isinstance(name, str) and isinstance(offset, tuple):
            found.setdefault(name, {})[offset] = _stored_part(_attributes(value), directory)
    return found


def _stored_part(info: dict[Any, Any], directory: str) -> TensorPart | str:
    path, start, length = (info.get(name) for name in ("relative_path", "offset", "length"))
    if info.get("transform_descriptors"):
        return "it is written by an extension of torch.distributed.checkpoint, such as one that compresses"
    if not isinstance(path, str) or not _SHARD_NAME.fullmatch(path):
        return "it is in no file of this directory"
    if not isinstance(start, int) or not isinstance(length, int) or not all(0 <= n < 1 << 62 for n in (start, length)):
        return "its place in the file is none"
    return TensorPart(f"{directory}/{path}", start, length, 0)


def _attributes(value: Any) -> dict[Any, Any]:
    """Return the attributes that the pickle gave to an object."""
    return next((each for each in getattr(value, "arguments", ()) if isinstance(each, dict)), {})


def _nested_values(value: Any, depth: int = 4) -> Iterator[Any]:
    yield value
    if depth and not isinstance(value, dict) and _has_children(value):
        for _, child in _children(value):
            yield from _nested_values(child, depth - 1)


def load_pickle(content: bytes) -> Any:
    """Return the value of a pickle, made of plain values and stand-ins.

    Raises:
        FileUnreadable: torch writes no such pickle.
    """
    try:
        return _Unpickler(io.BytesIO(content)).load()
    except Exception as error:  # a hostile pickle may raise anything, but it is caught here
        raise FileUnreadable(f"its table of contents can't be followed: {type(error).__name__}: {error}") from error


_DISPATCH: dict[int, Any] = dict(getattr(pickle, "_Unpickler").dispatch)  # noqa: B009


class _Unpickler(pickle._Unpickler):  # type: ignore[misc,name-defined,unused-ignore]
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, encoding="utf-8")
        self._object_class, self._mapping_class = _new_stand_ins()

    read: Callable[[int], bytes]
    append: Callable[[Any], None]

    def _load_bytearray8(self) -> None:
        """Read a bytearray. Python's own method would allocate as many bytes as the pickle claims before it reads
        them."""
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(length)))

    dispatch: ClassVar[dict[int, Any]] = {**_DISPATCH, pickle.BYTEARRAY8[0]: _load_bytearray8}

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("torch") and name in _STORAGE_TYPES:
            return _GlobalName(name)
        if module == "torch._utils" and name in _REBUILDERS:
            return _REBUILDERS[name]
        if (module, name) == ("collections", "OrderedDict"):
            return self._mapping_class
        if module == "torch" and name == "Size":
            return checked_shape
        if module == "torch":
            return _GlobalName(name)  # usually a dtype
        return self._object_class

    def persistent_load(self, reference: Any) -> _Storage:
        """Return the storage of ("storage", class, key, device, count), as torch/serialization.py writes it."""
        _, kind, key, *_ = reference
        name = kind.name if isinstance(kind, _GlobalName) else ""
        if name == "UntypedStorage":
            name = "ByteStorage"
        return _Storage(str(key), _STORAGE_TYPES.get(name, _DTYPE_ALIASES.get(name, name)))


def _new_stand_ins() -> tuple[Any, Any]:
    """Return new stand-ins for any class and for OrderedDict. Each pickle gets its own, since it may change them."""

    class Object:
        """An object of any class: it keeps its constructor's arguments and its state, and does nothing."""

        arguments: list[Any]

        def __new__(cls, *values: Any, **named: Any) -> Object:
            made = super().__new__(cls)
            made.arguments = [*values, *named.values()]
            return made

        def __init__(self, *values: Any, **named: Any) -> None:
            """Ignore the arguments: `__new__`, which alone makes some objects, has kept them."""

        def __setstate__(self, state: Any) -> None:
            self.arguments.append(state)

        def append(self, value: Any) -> None:
            self.arguments.append(value)

        def extend(self, values: Any) -> None:
            self.arguments.extend(values)

        def __setitem__(self, key: Any, value: Any) -> None:
            self.arguments.append({key: value} if isinstance(key, (str, int)) else value)

    class Mapping(dict[Any, Any]):
        """An OrderedDict without attributes of its own (such as `_metadata` of a state dict)."""

        def __setstate__(self, state: Any) -> None:
            pass

    return Object, Mapping


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _StorageView:
    if not isinstance(storage, _Storage) or not isinstance(offset, int) or not 0 <= offset < 1 << 62:
        raise ValueError("a tensor without a storage")
    sizes, steps = checked_shape(shape), checked_shape(stride)
    if len(sizes) != len(steps):
        raise ValueError("a shape that no tensor has")
    return _StorageView(storage, offset, sizes, steps)


def _rebuild_typed_tensor(storage: Any, offset: Any, shape: Any, stride: Any, *rest: Any) -> _StorageView:
    """Rebuild `_rebuild_tensor_v3`'s tensor: (…, requires_grad, hooks, dtype, metadata), over a storage of bytes."""
    name = rest[2].name if len(rest) > 2 and isinstance(rest[2], _GlobalName) else ""
    if isinstance(storage, _Storage) and name:
        storage = _Storage(storage.key, _DTYPE_ALIASES.get(name, name))
    return _rebuild_tensor(storage, offset, shape, stride)


_REBUILDERS = {
    "_rebuild_tensor": _rebuild_tensor,
    "_rebuild_tensor_v2": _rebuild_tensor,
    "_rebuild_tensor_v3": _rebuild_typed_tensor,
    "_rebuild_parameter": lambda data, *_: data,
    "_rebuild_parameter_with_state": lambda data, *_: data,
}
