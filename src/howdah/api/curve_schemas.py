"""Shapes of the answers to `curves/…` and `checkpoints…`, and to actions: what `openapi.json` tells of them.

Lists of numbers have their places' meanings in their record's words. A number that JSON has none for is its name: NaN,
Infinity, -Infinity.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from howdah.api.schemas import Columns, Sentence

Number = float | str
"""As JSON has it, or the name of one that it has none for."""


class Flaw(TypedDict):
    """A file or directory that could not be read, or not all of it; `memory`: for want of memory."""

    file: str
    text: Sentence
    memory: bool


class RunTags(TypedDict):
    """Tags by kind; `hparams`: whether the run tells its hyperparameters."""

    scalar: list[str]
    histogram: list[str]
    image: list[str]
    text: list[str]
    hparams: bool


# `from` is a keyword.
RunRow = TypedDict("RunRow", {"run": str, "tags": RunTags, "from": float, "to": float, "steps": int})
"""A run: its tags, when it began and was last heard of, and its last step."""


class Runs(TypedDict):
    """All runs; not `complete` while files are still read."""

    version: int
    runs: list[RunRow]
    complete: bool
    errors: list[Flaw]


class Line(TypedDict):
    """One scalar of one run. `points` are [step, time, least, mean, greatest], each for a stretch of the `count` that
    there are, null where nothing in it is a number; `last` is [step, time, value]; `nan` and `infinite` are counts, of
    which `odd` has the first as [step, time, name]."""

    run: str
    tag: str
    points: list[Annotated[list[Any], Columns(int, float, float | None, float | None, float | None)]]
    last: Annotated[list[Any], Columns(int, float, Number)] | None
    count: int
    started: float
    nan: int
    infinite: int
    odd: list[Annotated[list[Any], Columns(int, float, str)]]


class Lines(TypedDict):
    """The lines that were asked for, by tag and run; not `complete` while files are still read."""

    version: int
    complete: bool
    series: list[Line]


class HistogramStep(TypedDict):
    """`buckets` are [left, right, count]."""

    step: int
    time: float
    buckets: list[Annotated[list[Any], Columns(Number, Number, Number)]]


class Histograms(TypedDict):
    """Of one tag of one run."""

    version: int
    run: str
    tag: str
    steps: list[HistogramStep]


class DistributionStep(TypedDict):
    """`percentiles` are [percent, value below which so much lies]."""

    step: int
    time: float
    percentiles: list[Annotated[list[Any], Columns(float, Number)]]


class Distributions(TypedDict):
    """Of one tag of one run."""

    version: int
    run: str
    tag: str
    steps: list[DistributionStep]


class ImageRow(TypedDict):
    """`count` images of one step, in pixels."""

    step: int
    time: float
    width: int
    height: int
    count: int


class Images(TypedDict):
    """Which there are of one tag of one run; `curves/image` has them."""

    version: int
    run: str
    tag: str
    images: list[ImageRow]


class TextStep(TypedDict):
    """What a program wrote: data, not markup."""

    step: int
    time: float
    text: str


class Texts(TypedDict):
    """Of one tag of one run."""

    version: int
    run: str
    tag: str
    texts: list[TextStep]


class Session(TypedDict):
    """A run's hyperparameters, and the last values of its metrics. `status` is RUNNING, SUCCESS, FAILURE or ""."""

    run: str
    values: dict[str, Any]
    metrics: dict[str, float | str]
    group: str
    started: float
    ended: float
    status: str


class Hyperparameters(TypedDict):
    """Of all runs that tell theirs."""

    version: int
    runs: list[Session]


class CheckpointRow(TypedDict):
    """`step` is the number in its name, null without; `valid` is null where nobody looked, `reason` why it is not."""

    uri: str
    name: str
    step: int | None
    format: str
    bytes: int
    files: int
    modified: float
    valid: bool | None
    reason: Sentence


class Checkpoints(TypedDict):
    """The newest first."""

    checkpoints: list[CheckpointRow]
    errors: list[Flaw]


class TensorRow(TypedDict):
    """One tensor of a checkpoint; `count` numbers in `bytes`."""

    name: str
    dtype: str
    shape: list[int]
    count: int
    bytes: int


class Tensors(TypedDict):
    """All of a checkpoint."""

    uri: str
    tensors: list[TensorRow]


class TensorStatistics(TypedDict):
    """Of `sampled` of its `count` numbers; null where none of them is finite. `histogram` has [left, right, count]."""

    name: str
    dtype: str
    shape: list[int]
    count: int
    sampled: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int
    nan: int
    infinite: int
    histogram: list[Annotated[list[Any], Columns(float, float, float)]]


# Of actions.


class Done(TypedDict):
    """Nothing more: it is done, or begun."""


class Saving(TypedDict):
    """`saves` are pairs of an output and the number of its snapshot, which `jobs/ID` describes."""

    saves: list[Annotated[list[int], Columns(int, int)]]


class Stacks(TypedDict):
    """Text by task; kept at `uri`, or not for the reason in `problem`."""

    stacks: dict[str, str]
    uri: str
    problem: str


class TensorBoardState(TypedDict):
    """Of a TensorBoard: `url` is "" until its `state` is open; ask again."""

    state: str
    url: str
    detail: Sentence
