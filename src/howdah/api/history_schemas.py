"""Shapes of the answers about many jobs: the list, usage and comparisons, as `openapi.json` describes them."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from howdah.api.schemas import AllowedValues, JobStateName, Sentence


class MetricValues(TypedDict):
    """The last, the least and the greatest value of a metric that the job's programs reported."""

    last: float
    min: float
    max: float


class JobRow(TypedDict):
    """A job in the list. `cluster` is the profile that leads to the job's cluster, "" if it has no name; `url` is the
    page of a running job, "" for others; `cause` is one word for why the job did not succeed. GPU hours, hours of
    virtual cores (`cpu_hours`) and GiB-hours of memory are those of ended attempts, wasted GPU hours those of attempts
    whose work was lost. `metrics` and `params` (hyperparameters) hold those that `columns` names. `tags` are those of
    the job file, or those that people gave the job afterwards, like its `note`. Lists do not show an `archived` job
    that has ended, unless the request asks for archived jobs. `cost` is that of ended attempts, in the server's
    currency; null if it has no prices."""

    id: str
    name: str
    user: str
    queue: str
    engine: str
    cluster: str
    framework: str
    state: JobStateName
    started: float
    finished: float
    duration_s: float
    tasks: int
    gpus: int
    gpu_hours: float
    wasted_gpu_hours: float
    cpu_hours: float
    memory_gib_hours: float
    cause: str
    progress: float
    diagnostics: Sentence
    url: str
    tags: list[str]
    note: str
    archived: bool
    cost: float | None
    metrics: dict[str, MetricValues]
    params: dict[str, str]


class JobAnnotation(TypedDict):
    """The annotation that people have added to a job. `tags` is null if the job has those of its job file. `changed` is
    the time of the last change, `by` the user who made it."""

    note: str
    tags: list[str] | None
    archived: bool
    changed: float
    by: str


class RunNames(TypedDict):
    """The names of the metrics and hyperparameters that any of the jobs of this page has."""

    metrics: list[str]
    params: list[str]


class Jobs(TypedDict):
    """A page of the list; `next` is the cursor of the next page. `total` counts all jobs that match the filters;
    `problems` are sentences for people, such as that the list cannot be updated now."""

    jobs: list[JobRow]
    next: str | None
    total: int
    names: RunNames
    problems: list[Sentence]


class UserRow(TypedDict):
    """The resources that the jobs of one user used, or those of another group: a queue, a tag, a day; `user` is ""
    then. `cpu_hours` are hours of virtual cores; `by_cause` are the wasted GPU hours by cause."""

    user: str
    group: str
    jobs: int
    gpu_hours: float
    cpu_hours: float
    memory_gib_hours: float
    wasted_gpu_hours: float
    cost: float | None
    by_cause: dict[str, float]


class Users(TypedDict):
    """All groups with jobs in that time: days with the latest first, others with the most GPU hours first. The total
    counts each job once, also one of several tags. `currency` is "", and each cost null, if the server
    has no prices."""

    by: Annotated[str, AllowedValues(("user", "queue", "tag", "day"))]
    currency: str
    users: list[UserRow]
    total: UserRow


class Difference(TypedDict):
    """A place in several jobs and their `values` there; one that is missing, or is the default, is null. `a` and `b`
    are the values of the first two."""

    path: str
    a: Any
    b: Any
    values: list[Any]


class Compare(TypedDict):
    """A comparison of several jobs: their rows, the differences of their specs, and the differences of what was
    recorded at submission; with `equal` also the places at which they agree."""

    jobs: list[JobRow]
    spec: list[Difference]
    captured: list[Difference]
