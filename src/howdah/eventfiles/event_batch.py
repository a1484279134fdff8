"""What a stretch of an event file says: plain values, which travel between processes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from howdah.eventfiles.record_framing import DamagedRecord


@dataclass
class Points:
    """Of one scalar: columns of the same length; `ats` are places in the file, left out where no one asks for them."""

    ats: Sequence[int] = field(default_factory=list)
    steps: array[int] = field(default_factory=lambda: array("q"))
    walls: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Histogram:
    """`buckets` is left, right, count of the first, then of the others."""

    step: int
    wall: float
    buckets: array[float]


@dataclass(frozen=True)
class Image:
    """Where it is to be found: too large to be kept. `offset` of its record in file `uri`, of `length` bytes."""

    tag: bytes
    step: int
    wall: float
    uri: str
    offset: int
    length: int
    width: int
    height: int
    count: int


@dataclass(frozen=True)
class TextValue:
    step: int
    wall: float
    text: str


@dataclass
class HyperparameterSession:
    """What is known of a run's hyperparameters: `status` is RUNNING, SUCCESS, FAILURE or ""."""

    values: dict[str, object] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=list)
    group: str = ""
    started: float = 0.0
    ended: float = 0.0
    status: str = ""


@dataclass
class Batch:
    """Tags are bytes here: a string only by their writer's promise. `restarts` are pairs of a place and the step from
    which on the program has started again there; `kinds` the plugins of tags that tell theirs; `next` is where the
    file is to be read on, `head` how it begins."""

    uri: str
    next: int
    scalars: dict[bytes, Points] = field(default_factory=dict)
    histograms: list[tuple[bytes, Histogram]] = field(default_factory=list)
    images: list[tuple[bytes, Image]] = field(default_factory=list)
    texts: list[tuple[bytes, TextValue]] = field(default_factory=list)
    sessions: list[HyperparameterSession] = field(default_factory=list)
    restarts: list[tuple[int, int]] = field(default_factory=list)
    kinds: dict[bytes, bytes] = field(default_factory=dict)
    flaws: list[DamagedRecord] = field(default_factory=list)
    head: bytes = b""
