"""Shapes of the API's answers. Handlers return them, `openapi.json` describes them, and the page's types are made from
them.

Times are epoch seconds, 0 for events that have not happened; the unit of a size is in its name.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from howdah.spec import State
from howdah.spec.task import JOB_STATES


class AllowedValues(NamedTuple):
    """Lists the values that a text can have."""

    values: tuple[str, ...]


class Columns:
    """Lists the types of the elements of a list, in order."""

    def __init__(self, *kinds: Any) -> None:
        self.kinds = kinds


class Format(NamedTuple):
    """Holds the `format` of a JSON Schema."""

    name: str


Sentence = Annotated[str, Format("sentence")]
"""A sentence for people, in the language that the request asks for (howdah.api.answer_language)."""
StateName = Annotated[str, AllowedValues(tuple(state.value for state in State))]
JobStateName = Annotated[str, AllowedValues(tuple(state.value for state in JOB_STATES))]
PhaseName = Annotated[str, AllowedValues(("asked", "allocated", "launched", "localising", "joined", "running"))]


class Description(TypedDict):
    """The OpenAPI document itself."""

    openapi: str
    info: dict[str, str]
    paths: dict[str, Any]
    components: dict[str, Any]
    security: list[dict[str, list[str]]]


class Error(TypedDict):
    """Why a request is refused."""

    error: Sentence


class Unchanged(TypedDict):
    """Answers a request with `since` when nothing has changed since that version."""

    version: int
    unchanged: bool


class Server(TypedDict):
    """The server that answers. `job` is its only job, null if it has many; `may_act` says whether it accepts links that
    may act; `history` is the address, without a token, of a history server that shows the job after its end, "" if none
    is known; `link_command` is the command that prints a link to this page; `currency` is that of costs, "" if the
    server has no prices."""

    kind: Annotated[str, AllowedValues(("master", "history"))]
    version: str
    job: str | None
    now: float
    may_act: bool
    engine: str
    history: str
    link_command: str
    currency: str


class PagePlace(TypedDict):
    """The path below which the browser now needs no token; "" if it still needs the token."""

    path: str


class PageLink(TypedDict):
    """A link to the page is the server's address with this path and `#token=`; both are "" behind an engine's proxy."""

    path: str
    token: str


class Failure(TypedDict):
    """The first failure, which explains the others. `exception` is the line of the program's own exception, "" if its
    last `lines` have none; `user_lines` are the numbers, from 0, of those about the user's own code. `try_number` and
    `attempt` are those of the start that failed (`Attempt`), 0 if none is known; `log_end` is where in its container's
    log (stream `both`) the output of the next start begins, null if there is none or that is not known."""

    task: str
    try_number: int
    attempt: int
    log_end: int | None
    node: str
    exit: Sentence
    exception: str
    advice: Sentence
    lines: list[str]
    user_lines: list[int]


class Wait(TypedDict):
    """How many containers of which role the job waits for, since when, and why as far as the engine says."""

    since: float
    missing: dict[str, int]
    reasons: list[Sentence]


class Link(TypedDict):
    """A link that the page shows; `kind` is user, tensorboard, notebook or tracker (an experiment tracker)."""

    name: str
    url: str
    kind: Annotated[str, AllowedValues(("user", "tensorboard", "notebook", "tracker"))]


class TrackedRun(TypedDict):
    """A run of an experiment tracker that a program has printed: the `tracker` is MLflow, W&B or a host, `run` its id,
    "" where the address does not tell it."""

    task: str
    tracker: str
    run: str
    url: str


class Note(TypedDict):
    """Something that happened, as a sentence."""

    time: float
    text: Sentence


class SnapshotRow(TypedDict):
    """A snapshot of an output, taken while the programs run: `done` of `tasks` tasks have copied their part."""

    number: int
    output: int
    uri: str
    tasks: int
    by: str
    state: JobStateName
    done: int
    files: int
    bytes: int
    total: int
    started: float
    finished: float
    reason: Sentence
    skipped: list[Sentence]
    removed: bool


class RoleRow(TypedDict):
    """A role with the number of its tasks in each state; `resources` are those of one container."""

    name: str
    replicas: int
    running: int
    succeeded: int
    failed: int
    pending: int
    cancelled: int
    stopped: int
    resources: dict[str, Any]


class Submitted(TypedDict):
    """The job file as it was submitted, its path, and what replaced values of it: `--set` and variables of the
    environment by the name of a variable or the path of a field, other options with `--`. All are empty for a job
    without a job file."""

    yaml: str
    file: str
    overrides: dict[str, str]


class Captured(TypedDict):
    """What was recorded at the submission. `variables` are the job's own variables, without secrets."""

    git_commit: str
    git_dirty: bool
    packages: dict[str, str]
    command: list[str]
    client: str
    user: str
    submitted_at: float
    variables: dict[str, str]


class Hint(TypedDict):
    """A suggestion for an improvement; `task` or `role` says where, and the other is empty. `text` is `template` with
    its `values` in place of their names in braces; a client that shows another language uses `template` and
    `values`."""

    task: str
    role: str
    text: str
    template: str
    values: dict[str, str | float]


class Job(TypedDict):
    """A job. `can` lists all actions, and for each whether it is possible now; `eta_s` is null while it is not known;
    `gpu_hours` are those that its containers have held; `stacks` are the URIs of the newest stacks that were kept;
    `tensorboard_ended` says how the job's TensorBoard ended, null if it did not, or was started again."""

    id: str
    name: str
    user: str
    queue: str
    engine: str
    framework: str
    state: JobStateName
    epoch: int
    host: str
    python: str
    progress: float
    eta_s: float | None
    asked: float
    started: float
    running: float
    finished: float
    gpu_hours: float
    diagnostics: Sentence
    failure: Failure | None
    waiting: Wait | None
    stacks: list[str]
    resumed: str
    outputs: list[str]
    links: list[Link]
    tracker_runs: list[TrackedRun]
    tracker_run_count: int
    notes: list[Note]
    saves: list[SnapshotRow]
    tensorboard_ended: Note | None
    can: dict[str, bool]
    submitted: Submitted
    spec: dict[str, Any]
    resolved: dict[str, Any]
    captured: Captured
    roles: list[RoleRow]
    hints: list[Hint]
    labels: dict[str, str]
    tags: list[str]


class Attempt(TypedDict):
    """One try of a task: a start of its program. `attempt` is the number of its container, as for its logs;
    `log_offset` is where in that container's log (stream `both`) its output begins, null if that is not known."""

    try_number: int
    attempt: int
    container: str
    node: str
    started: float
    finished: float
    exit: Sentence
    state: StateName
    log_url: str
    log_offset: int | None


class Task(TypedDict):
    """A task as it is now; `rank` is its rank in the job, null for a spare. `attempt` counts the containers of the
    task, as its logs do; `tries` also counts each restart of its program in a container. What was not measured is null
    or 0."""

    task: str
    role: str
    rank: int | None
    state: StateName
    phase: str
    attempt: int
    tries: int
    container: str
    node: str
    host: str
    pid: int
    python: str
    program_python: str
    gpus: list[str]
    ports: dict[str, int]
    started: float
    finished: float
    progress: float | None
    memory_mib: float
    peak_mib: float
    cpu: float
    gpu: float | None
    gpu_memory_mib: float | None
    read_mib: float
    written_mib: float
    received_mib: float
    sent_mib: float
    data_bytes: int
    data_total_bytes: int
    metrics: dict[str, float | None]
    exit: Sentence
    log_url: str
    straggler: Sentence
    notice: Sentence
    attempts: list[Attempt]


class Tasks(TypedDict):
    """All tasks, in order of rank."""

    tasks: list[Task]


class Events(TypedDict):
    """Events as in the event log, and the number from which to ask next. `sentences` has a sentence for each of the
    events, "" for samples of usage and metrics."""

    next: int
    events: list[dict[str, Any]]
    sentences: list[Sentence]


class Log(TypedDict):
    """The `text` of a log of `size` bytes from `offset` on; `next` is the offset of the next piece. If `complete`, no
    more will come. If the request asks for `lines`, `first_line` is the number, from 1, of the line with which `text`
    begins, null if it is not known; and [n, time] in `times` says that the lines of `text` from line n on, counted from
    0, were printed since then. If it asks for both streams, [n, stream] in `streams` says to which one they were."""

    offset: int
    size: int
    next: int
    text: str
    first_line: int | None
    times: list[Annotated[list[Any], Columns(int, float)]]
    streams: list[Annotated[list[Any], Columns(int, str)]]
    complete: bool
    attempts: list[int]


class MergedLine(TypedDict):
    """A line of a task's log: its offset in both streams together; to which of them it was printed, "" if that is not
    known; and when, null if that is not known."""

    task: str
    attempt: int
    stream: str
    offset: int
    time: float | None
    text: str


class MergedLines(TypedDict):
    """The last lines of `tasks` tasks in the order of time; `left_out` tasks are too many. The lines are all that were
    printed since `complete_since`; before it, those of busy tasks are missing."""

    lines: list[MergedLine]
    complete_since: float
    tasks: int
    left_out: int
    problems: list[Sentence]


class SearchMatch(TypedDict):
    """A line that was found: its number from 1, its offset in the stream, and when it was printed, if that is known."""

    task: str
    attempt: int
    stream: str
    offset: int
    line: int
    text: str
    level: str
    time: float | None


class SearchResult(TypedDict):
    """The result of a search; not `complete` if there are more hits, or if `problems` names logs that could not be
    searched."""

    hits: list[SearchMatch]
    scanned_bytes: int
    seconds: float
    complete: bool
    problems: list[Sentence]


class SeriesName(TypedDict):
    """A name of a series; `kind` is sampled (for every task) or told (reported by its program)."""

    name: str
    unit: str
    kind: Annotated[str, AllowedValues(("sampled", "told"))]


class TaskSeries(TypedDict):
    """One series of a task; `points` are [time, least, mean, most], null where there is no value. `steps` has the
    training step of each point that a program has reported, null where it named none."""

    task: str
    name: str
    unit: str
    points: list[Annotated[list[Any], Columns(float, float | None, float | None, float | None)]]
    steps: list[int | None]


class Series(TypedDict):
    """The names of all series, and the series that were requested."""

    version: int
    names: list[SeriesName]
    series: list[TaskSeries]


class TraceResult(TypedDict):
    """The owner of a container, process or GPU. `task` is "" and `attempt` 0 if only the job is known (the container
    was the master's). `rank` is null for a spare; `pid` is the program's process, of which the requested process may be
    a child; `gpus` are numbers or UUIDs. `engine_facts` say where in the engine the container is, by
    the engine's own names; many have none."""

    job: str
    name: str
    state: str
    user: str
    queue: str
    engine: str
    task: str
    role: str
    index: int
    rank: int | None
    attempt: int
    host: str
    container: str
    engine_facts: dict[str, str]
    pid: int
    gpus: list[str]
    since: float
    until: float
    url: str
