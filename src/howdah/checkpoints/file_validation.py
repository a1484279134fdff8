"""Finds out whether a file was cut: many formats contain the length that a file must have.

Functions return "" for a complete file, a few words about the defect of an incomplete one, and None if the format does
not tell.
"""

# ruff: noqa: PTH123

from __future__ import annotations

import json
import os
import posixpath
import re
import struct
from collections.abc import Collection, Iterator
from typing import BinaryIO

from howdah.checkpoints import tensorflow_index

TEXT_LIMIT = 16 << 20
INDEX_LIMIT = 256 << 20
HEADER_LIMIT = 100 << 20
"""Largest header of a safetensors file, which its own library allows."""
MAX_OFFSET = 1 << 60
DATA = re.compile(r"(.*)\.data-(\d{5})-of-(\d{5})")
STATE = "checkpoint"
"""TensorFlow's file that names the newest checkpoint."""

_ZIP, _HDF5 = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"
_ZIP_NAMES = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".keras", ".npz", ".zip")
_PICKLES = (".pkl", ".pickle", ".joblib")
_NAMES = (*_ZIP_NAMES, *_PICKLES, ".safetensors", ".index", ".json", ".h5", ".hdf5", ".distcp", ".metadata")


def has_known_format(name: str) -> bool:
    """Return whether the format of a file with this name may tell whether the file is whole."""
    return name.endswith(_NAMES)


def describe_defect(path: str) -> str | None:
    """Return the defect of a local file; None if it is not known, or if the file was removed."""
    if not has_known_format(path):
        return None
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            return find_defect(file, path, size) if size else None
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def find_defect(file: BinaryIO, name: str, size: int) -> str | None:
    """Return the defect of `file`, which has `size` bytes."""
    start = _read(file, 0, 16)
    if size == 0 and has_known_format(name):
        return "it is empty"
    if start.startswith(_ZIP) or (_ZIP.startswith(start) and name.endswith(_ZIP_NAMES)):
        return _zip_defect(file, size)
    if name.endswith(".safetensors"):
        return _safetensors_defect(file, size)
    if start.startswith(_HDF5) or name.endswith((".h5", ".hdf5")):
        return _hdf5_defect(file, size) if start.startswith(_HDF5) else "it does not begin as an HDF5 file"
    if name.endswith(".index"):
        # Other programs than TensorFlow have files of this name.
        return "" if _read(file, size - 8, 8) == tensorflow_index.MAGIC else None
    if name.endswith(".json"):
        return _json_defect(file, size)
    if name.endswith(".metadata") and start.startswith(b"\x80"):
        return _pickle_defect(file, size)
    if name.endswith(_PICKLES) and start.startswith(b"\x80"):
        return "" if _read(file, size - 1, 1) == b"." else "it is cut: the pickle has no end"
    return None


def _zip_defect(file: BinaryIO, size: int) -> str:
    """Check an archive of torch.save, Keras or NumPy: a zip archive ends with its directory (APPNOTE.TXT 4.3)."""
    cut = "it is cut: the archive has no end"
    end = _read(file, size - 22, 22)
    if len(end) < 22 or end[:4] != b"PK\x05\x06" or end[20:] != b"\0\0":
        return cut
    length, offset, directory_end = _number(end, 12, 4), _number(end, 16, 4), size - 22
    locator = _read(file, directory_end - 20, 20)
    if locator[:4] == b"PK\x06\x07":
        directory_end = _number(locator, 8, 8)
        large = _read(file, directory_end, 56)
        if large[:4] != b"PK\x06\x06":
            return cut
        length, offset = _number(large, 40, 8), _number(large, 48, 8)
    return "" if offset + length == directory_end and _read(file, offset, 2) == b"PK" else cut


def _safetensors_defect(file: BinaryIO, size: int) -> str:
    """Check a safetensors file: eight bytes of length, a JSON header, the tensors' bytes (its README, Format)."""
    length = _number(_read(file, 0, 8), 0, 8)
    if size < 8 or length > size - 8:
        return "it is cut within its header"
    if length > HEADER_LIMIT:
        return "its header is larger than any of safetensors"
    try:
        header = json.loads(_read(file, 8, length))
        spans = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
        wanted = 8 + length + max((end for _, end in spans), default=0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "its header is not a header of safetensors"
    return "" if size >= wanted else f"it has {size} of {wanted} bytes"


def _hdf5_defect(file: BinaryIO, size: int) -> str | None:
    """Check an HDF5 file: its superblock says where the file ends (HDF5 File Format Specification, II.A).

    A file of that length may still be incomplete, because its writer may have more in memory.
    """
    block = _read(file, 0, 64)
    if len(block) < 64:
        return "it is cut within its superblock"
    if block[8] < 2:
        width, offset = block[13], 24 + (4 if block[8] == 1 else 0)
    else:
        width, offset = block[9], 12
    wanted = _number(block, offset + 2 * width, width)
    return None if size >= wanted else f"it has {size} of {wanted} bytes"


def _pickle_defect(file: BinaryIO, size: int) -> str:
    """Check a pickle by reading its operations to the end, without executing them."""
    import pickletools

    try:
        ends = [
            position for operation, _, position in pickletools.genops(_read(file, 0, size)) if operation.name == "STOP"
        ]
    except (ValueError, IndexError, OverflowError, struct.error):
        ends = []
    return "" if ends == [size - 1] else "it is cut: the pickle has no end"


def _json_defect(file: BinaryIO, size: int) -> str:
    if size > TEXT_LIMIT:
        whole = _read(file, size - 64, 64).rstrip().endswith((b"}", b"]"))
        return "" if whole else "it is cut: the text has no end"
    try:
        json.loads(_read(file, 0, size))
    except (ValueError, RecursionError):
        return "it is not a whole JSON text"
    return ""


def bundle_defect(index: BinaryIO, index_size: int, prefix: str, sizes: dict[str, int]) -> str:
    """Return the defect of a TensorFlow checkpoint; `sizes` has the sizes of all files beside its index, by path."""
    if index_size > INDEX_LIMIT:
        return "its index is larger than any that TensorFlow writes"
    try:
        wanted = tensorflow_index.shards(_read(index, 0, index_size))
    except tensorflow_index.IndexUnreadable as error:
        return str(error)
    for number, minimum in enumerate(wanted):
        name = f"{prefix}.data-{number:05d}-of-{len(wanted):05d}"
        if name not in sizes:
            return f"{posixpath.basename(name)} is missing"
        if sizes[name] < minimum:
            return f"{posixpath.basename(name)} has {sizes[name]} of {minimum} bytes"
    return ""


def is_part(name: str) -> bool:
    """Return whether the file is useless without other files of the same moment: it is a part of a TensorFlow
    checkpoint, or the file that names one."""
    return bool(DATA.fullmatch(name)) or name.endswith(".index") or posixpath.basename(name) == STATE


def is_useful_alone(name: str) -> bool:
    """Return whether a file has no format in which checkpoints are written: a log, a table, a text."""
    return name.endswith(".json") or not (has_known_format(name) or DATA.fullmatch(name))


def find_orphans(names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield files of TensorFlow checkpoints of which another file is missing, with the reason."""
    present: dict[str, set[int]] = {}
    counts: dict[str, int] = {}
    for name in names:
        match = DATA.fullmatch(name)
        if match:
            present.setdefault(match[1], set()).add(int(match[2]))
            counts[match[1]] = int(match[3])
    for name in list(names):
        match = DATA.fullmatch(name)
        if match and f"{match[1]}.index" not in names:
            yield name, "its index was not there"
        elif match and len(present[match[1]]) < counts[match[1]]:
            yield name, "another data file of its checkpoint was not there"
        elif name.endswith(".index") and name[:-6] in present and len(present[name[:-6]]) < counts[name[:-6]]:
            yield name, "a data file of its checkpoint was not there"


def named_by(state: bytes) -> str:
    """Return the checkpoint that TensorFlow's state file names (CheckpointState, as text); "" when it names none."""
    found = re.search(rb'^model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"', state, re.MULTILINE)
    return found[1].decode("utf-8", "replace") if found else ""


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    """Read part of a file; return nothing at offsets outside of the file, because damaged files contain any offsets."""
    if not 0 <= offset < MAX_OFFSET or length <= 0:
        return b""
    file.seek(offset)
    return file.read(length)


def _number(data: bytes, offset: int, width: int) -> int:
    return int.from_bytes(data[offset : offset + width], "little")
