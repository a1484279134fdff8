"""Writes event files for tests, byte by byte as TensorFlow and PyTorch do."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from howdah.eventfiles.proto import event_pb2
from howdah.inputs.formats import framing
from howdah.storage import native_codecs

WALL = 1_700_000_000.0
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


def framed(contents: Iterable[bytes]) -> bytes:
    """Return records in their frames."""
    return b"".join(framing.tfrecord(content, native_codecs.crc32c()) for content in contents)


def event(step: int = 0, wall: float = WALL) -> event_pb2.Event:
    return event_pb2.Event(wall_time=wall, step=step)


def scalar(tag: str | bytes, step: int, value: float, wall: float | None = None) -> bytes:
    """Return a scalar as PyTorch writes it."""
    made = event(step, WALL + step if wall is None else wall)
    made.summary.value.add(tag=tag.encode() if isinstance(tag, str) else tag, simple_value=value)
    return made.SerializeToString()


def tensor_scalar(tag: str, step: int, value: float, double: bool = False) -> bytes:
    """Return a scalar as TensorFlow 2 writes it."""
    made = event(step, WALL + step)
    one = made.summary.value.add(tag=tag.encode())
    one.metadata.plugin_data.plugin_name, one.metadata.data_class = b"scalars", 1
    one.tensor.dtype = 2 if double else 1
    one.tensor.tensor_shape.SetInParent()
    one.tensor.tensor_content = struct.pack("<d" if double else "<f", value)
    return made.SerializeToString()


def start() -> bytes:
    """Return the first record of a file."""
    return event_pb2.Event(wall_time=WALL, file_version="brain.Event:2").SerializeToString()


def image(tag: str, step: int, content: bytes) -> bytes:
    made = event(step)
    one = made.summary.value.add(tag=tag.encode()).image
    one.width, one.height, one.encoded_image_string = 1, 1, content
    return made.SerializeToString()


def audio(tag: str, step: int, content: bytes) -> bytes:
    """Return an audio clip as PyTorch writes it."""
    made = event(step)
    one = made.summary.value.add(tag=tag.encode()).audio
    one.sample_rate, one.num_channels, one.encoded_audio_string, one.content_type = 8000, 1, content, b"audio/wav"
    return made.SerializeToString()


def precision_recall(tag: str, step: int, rows: Sequence[Sequence[float]]) -> bytes:
    """Return a curve as TensorBoard's plugin writes it: six rows with a number for each threshold."""
    made = event(step)
    one = made.summary.value.add(tag=tag.encode())
    one.metadata.plugin_data.plugin_name, one.tensor.dtype = b"pr_curves", 1
    for size in (len(rows), len(rows[0])):
        one.tensor.tensor_shape.dim.add(size=size)
    one.tensor.float_val.extend(number for row in rows for number in row)
    return made.SerializeToString()


def curve(tag: str, steps: Iterable[int], *, tensors: bool = False) -> list[bytes]:
    write = tensor_scalar if tensors else scalar
    return [write(tag, step, 1 / (step + 1)) for step in steps]


def put(directory: Path, contents: Iterable[bytes], name: str = "events.out.tfevents.1700000000.host.1.0") -> Path:
    """Write a file of some records, with the first record before them."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_bytes(framed([start(), *contents]))
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
