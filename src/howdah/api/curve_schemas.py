"""Shapes of the answers to `timeline`, `curves/…`, `checkpoints…` and to actions, as `openapi.json` describes them.

The docstring of a record says what the elements of its lists mean. A number that JSON cannot express is its name: NaN,
Infinity, -Infinity.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from howdah.api.schemas import AllowedValues, Columns, PhaseName, Sentence, StateName

Number = float | str
"""A number of JSON, or the name of a number that JSON cannot express."""


class JobSpan(TypedDict):
    """A phase of the whole job; `end` is 0 while it lasts."""

    phase: Annotated[str, AllowedValues(("submitted", "forming", "running"))]
    start: float
    end: float


class Span(TypedDict):
    """A phase of a task; `end` is 0 while it lasts."""

    phase: PhaseName
    start: float
    end: float


class TimelineRow(TypedDict):
    """The phases of one try of a task (`Attempt`)."""

    task: str
    try_number: int
    attempt: int
    log_offset: int | None
    spans: list[Span]
    exit: Sentence
    state: StateName


class TimelineMoment(TypedDict):
    """Something that happened at a moment: `kind` is failed, lost, restarted, takeover, save or note; `task` is empty
    if it concerns the whole job."""

    time: float
    kind: Annotated[str, AllowedValues(("failed", "lost", "restarted", "takeover", "save", "note"))]
    task: str
    text: Sentence


class MarkedFailure(TypedDict):
    """Tells which try of which task failed, when and how, for the timeline; `try_number` is 0 where the try is not
    known."""

    task: str
    try_number: int
    time: float
    text: Sentence


Timeline = TypedDict(
    "Timeline",
    {
        "from": float,
        "to": float,
        "job": list[JobSpan],
        "tasks": list[TimelineRow],
        "marks": list[TimelineMoment],
        "first_failure": MarkedFailure | None,
        "last_failure": MarkedFailure | None,
    },
)
"""The phases of the job (`job`) and of each try; `last_failure` ended the job, null if that was the first one."""


class Flaw(TypedDict):
    """A file or directory that could not be read, or not completely; `memory` says whether memory was short."""

    file: str
    text: Sentence
    memory: bool


class RunTags(TypedDict):
    """The tags of a run by kind; `hparams` says whether the run recorded its hyperparameters."""

    scalar: list[str]
    histogram: list[str]
    image: list[str]
    audio: list[str]
    pr_curve: list[str]
    text: list[str]
    hparams: bool


# `from` is a keyword.
RunRow = TypedDict("RunRow", {"run": str, "tags": RunTags, "from": float, "to": float, "steps": int})
"""A run: its tags, the times of its first and last value, and its last step."""


class Runs(TypedDict):
    """All runs; not `complete` while files are still being read."""

    version: int
    runs: list[RunRow]
    complete: bool
    errors: list[Flaw]


class Line(TypedDict):
    """One scalar of one run. `points` are [step, time, least, mean, greatest], each for a stretch of the `count`
    values, null where no value of the stretch is a number; `last` is [step, time, value]; `nan` and `infinite` count
    such values, and `odd` lists the first of them as [step, time, name]."""

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
    """The requested lines, by tag and run; not `complete` while files are still being read."""

    version: int
    complete: bool
    series: list[Line]


class HistogramStep(TypedDict):
    """The histogram of one step; `buckets` are [left, right, count]."""

    step: int
    time: float
    buckets: list[Annotated[list[Any], Columns(Number, Number, Number)]]


class Histograms(TypedDict):
    """The histograms of one tag of one run."""

    version: int
    run: str
    tag: str
    steps: list[HistogramStep]


class DistributionStep(TypedDict):
    """The distribution of one step; `percentiles` are [percent, value below which that share lies]."""

    step: int
    time: float
    percentiles: list[Annotated[list[Any], Columns(float, Number)]]


class Distributions(TypedDict):
    """The distributions of one tag of one run."""

    version: int
    run: str
    tag: str
    steps: list[DistributionStep]


class ImageRow(TypedDict):
    """The images of one step: `count` of them, with their size in pixels."""

    step: int
    time: float
    width: int
    height: int
    count: int


class Images(TypedDict):
    """The list of images of one tag of one run; `curves/image` returns an image."""

    version: int
    run: str
    tag: str
    images: list[ImageRow]


class AudioStep(TypedDict):
    """The audio clips of one step: `count` of them."""

    step: int
    time: float
    count: int


class AudioClips(TypedDict):
    """The list of audio clips of one tag of one run; `curves/audio_clip` returns a clip."""

    version: int
    run: str
    tag: str
    steps: list[AudioStep]


class PrecisionRecallStep(TypedDict):
    """The curve of one step; `points` are [recall, precision, threshold]."""

    step: int
    time: float
    points: list[Annotated[list[Any], Columns(Number, Number, float)]]


class PrecisionRecallCurves(TypedDict):
    """The curves of precision over recall of one tag of one run."""

    version: int
    run: str
    tag: str
    steps: list[PrecisionRecallStep]


class TextStep(TypedDict):
    """A text that a program wrote: data, not markup."""

    step: int
    time: float
    text: str


class Texts(TypedDict):
    """The texts of one tag of one run."""

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
    """The hyperparameters of all runs that recorded them."""

    version: int
    runs: list[Session]


class CheckpointRow(TypedDict):
    """A checkpoint. `step` is the number in its name, null if there is none; `valid` is null if it was not checked;
    `reason` says why it is not valid."""

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
    """All checkpoints, the newest first."""

    checkpoints: list[CheckpointRow]
    errors: list[Flaw]


class TensorRow(TypedDict):
    """One tensor of a checkpoint: `count` numbers in `bytes` bytes."""

    name: str
    dtype: str
    shape: list[int]
    count: int
    bytes: int


class Tensors(TypedDict):
    """All tensors of a checkpoint."""

    uri: str
    tensors: list[TensorRow]


class TensorStatistics(TypedDict):
    """Statistics of `sampled` of a tensor's `count` numbers, null if none of them is finite; `histogram` has [left,
    right, count]."""

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
    """An empty answer: the action is done, or has begun."""


class Saving(TypedDict):
    """The snapshots that were begun: `saves` are pairs of an output and the number of its snapshot, as in `jobs/ID`."""

    saves: list[Annotated[list[int], Columns(int, int)]]


class Stacks(TypedDict):
    """Stacks as text, by task; they are stored at `uri`, or were not stored because of `problem`."""

    stacks: dict[str, str]
    uri: str
    problem: str


class KeptStacks(TypedDict):
    """The stacks that were kept last, as text, by task; they are stored at `uri`. Not `complete` if there are more than
    an answer holds."""

    stacks: dict[str, str]
    uri: str
    complete: bool


class TensorBoardState(TypedDict):
    """The state of the job's TensorBoard: `url` is "" until `state` is open; ask again."""

    state: str
    url: str
    detail: Sentence
