"""Holds the values of a section of an event file in a form that can be sent between processes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import field

from howdah.eventfiles.record_framing import DamagedRecord
from howdah.spec.values import dataclass


@dataclass
class Points:
    """Holds the points of one scalar in columns of the same length."""

    offsets: Sequence[int] = field(default_factory=list)
    """The byte of the file at which each record begins; empty if nothing needs it."""
    steps: array[int] = field(default_factory=lambda: array("q"))
    walls: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Histogram:
    """Holds one histogram of an event file."""

    step: int
    wall: float
    buckets: array[float]
    """Left edge, right edge and count of the first bucket, then of the others."""


@dataclass(frozen=True, kw_only=True)
class Media:
    """The position of the audio clips or images of one step in a file: they are too large to be kept."""

    tag: bytes
    step: int
    wall: float
    uri: str
    offset: int
    """The byte of the file at which the record begins."""
    length: int
    """The bytes of the whole record."""
    count: int
    """The number of clips or images in the record."""


@dataclass(frozen=True, kw_only=True)
class Image(Media):
    """The position of the images of one step in a file, and their size in pixels."""

    width: int
    height: int


@dataclass(frozen=True)
class PrecisionRecallCurve:
    """Holds one curve of precision over recall."""

    step: int
    wall: float
    points: array[float]
    """Recall, precision and threshold of the first point, then of the others."""


@dataclass(frozen=True)
class TextValue:
    """Holds one text of an event file."""

    step: int
    wall: float
    text: str


@dataclass
class HyperparameterSession:
    """Holds the hyperparameters of a run and the names of its metrics."""

    values: dict[str, object] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=list)
    group: str = ""
    started: float = 0.0
    ended: float = 0.0
    status: str = ""
    """RUNNING, SUCCESS, FAILURE or "" (unknown)."""


@dataclass
class Batch:
    """Holds the values of a section of a file. Tags are bytes, since nothing ensures that they are UTF-8."""

    uri: str
    next: int
    """The byte at which reading continues."""
    scalars: dict[bytes, Points] = field(default_factory=dict)
    histograms: list[tuple[bytes, Histogram]] = field(default_factory=list)
    images: list[tuple[bytes, Image]] = field(default_factory=list)
    audio: list[tuple[bytes, Media]] = field(default_factory=list)
    pr_curves: list[tuple[bytes, PrecisionRecallCurve]] = field(default_factory=list)
    texts: list[tuple[bytes, TextValue]] = field(default_factory=list)
    sessions: list[HyperparameterSession] = field(default_factory=list)
    restarts: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of a byte of the file and the step from which the program started again there."""
    kinds: dict[bytes, bytes] = field(default_factory=dict)
    """The plugin of each tag that names one."""
    damaged: list[DamagedRecord] = field(default_factory=list)
    head: bytes = b""
    """The first bytes of the file, by which a replaced file is noticed."""
