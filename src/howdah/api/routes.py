"""The table of all calls of the API: the router looks up the handler of a request in it, and `openapi.json` is made
from it.

A handler, `async (ApiRequest) -> JSON value | Response`, is named `module:function` below `howdah.api.handlers`, and
imported at its first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import Any

from howdah.api.http_server import Request
from howdah.api.sources import JobSource, Source
from howdah.logs.query import whole_number
from howdah.spec.values import dataclass

PREFIX = "/api/v1/"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query."""

    name: str
    """The name in the query."""
    summary: str
    """One phrase for docs/api.md and openapi.json."""
    kind: str = "string"
    """A type of JSON Schema: string, integer, number; an array holds strings, one for each time that the parameter is
    given."""


@dataclass(frozen=True)
class Route:
    """A call of the API, answered to GET."""

    path: str
    """The path below `api/v1/`: `{job}` and `{task}` stand for one segment, a final `{rest}` for all that follows."""
    handler: str
    """The function that answers, as `module:function` below `howdah.api.handlers`."""
    summary: str
    """One sentence for docs/api.md and openapi.json."""
    parameters: tuple[Parameter, ...] = ()
    """The parameters of the query."""
    answer: str = ""
    """The name of the answer's shape, which `howdah.api.answer_shapes` finds, or its content type."""
    cached: bool = False
    """True if the answer depends on the job's version alone: it is rendered at most once a second, and a request with
    `since=` gets a short answer if nothing has changed."""
    embeddable: bool = False
    """True if an embed token permits the call."""


@dataclass(frozen=True)
class Action:
    """A call that changes a job, by PUT or POST on `jobs/{job}/actions/<name>`. The table of actions in the master has
    the code."""

    name: str
    """The last segment of the path."""
    summary: str
    """One sentence for docs/api.md and openapi.json."""
    words: tuple[Parameter, ...] = ()
    """The values in the call's body beside the token."""
    answer: str = "Done"
    """The name of the answer's shape."""
    of_history: bool = False
    """True if a history server executes the action; others are executed by the job's master."""


@dataclass(frozen=True)
class ApiRequest:
    """A call as its handler sees it."""

    http: Request
    """The HTTP request."""
    source: Source
    """The source of the answer's data."""
    job_or_none: JobSource | None
    """The job that the path names; None when the path names none."""
    path_params: dict[str, str]
    """The values in the path."""
    query: dict[str, str]
    """The values in the query."""

    @property
    def job(self) -> JobSource:
        """Return the job of a call whose path names one."""
        assert self.job_or_none is not None
        return self.job_or_none

    def number(self, name: str, default: int, minimum: int | None = None, maximum: int | None = None) -> int:
        """Return the query's whole number of this name, limited to the range from `minimum` to `maximum`.

        Raises:
            InvalidRequest: the value is not a whole number.
        """
        value = whole_number(self.query, name, default)
        value = value if minimum is None else max(minimum, value)
        return value if maximum is None else min(maximum, value)


Handler = Callable[[ApiRequest], Awaitable[Any]]

SINCE = Parameter("since", "The version that you have; the answer is short if nothing has changed.", "integer")
RANGE = (Parameter("from", "Epoch seconds.", "number"), Parameter("to", "Epoch seconds.", "number"))
_FROM_END = "a negative number counts from the job's end, or from now while it runs."

RUN, TAG = Parameter("run", "The run's name."), Parameter("tag", "The tag.")
RUNS = (
    Parameter("run", "A run's name, or several separated by commas; may be repeated. All by default.", "array"),
    Parameter("tag", "A tag, or several, as in `run`.", "array"),
)
POINTS = Parameter(
    "points", "The most points of each line, 1000 by default; of a picture its width in pixels.", "integer"
)
PICTURE = (
    Parameter("x", "step (the default), time or relative."),
    Parameter("scale", "linear (the default) or log, of the values; of histograms of the counts."),
    Parameter("title", "A title instead of the tags."),
    Parameter("width", "Pixels.", "integer"),
    Parameter("height", "Pixels.", "integer"),
    Parameter("language", "en or zh."),
    Parameter("theme", "auto, light or dark."),
)
EMBEDDED = (
    Parameter("chart", "scalars (the default), histograms or distributions, with their parameters."),
    *PICTURE,
    Parameter("refresh", "Seconds between two updates, 5 by default.", "number"),
)
IMAGE = (
    Parameter("step", "The step; the last by default.", "integer"),
    Parameter("index", "The number of the image or clip within the step, from 0.", "integer"),
)
SCOPE = Parameter("task", "These tasks, roles or ranks (worker:0-7), separated by commas.")
SEARCH = (
    Parameter("text", "The text that the lines contain."),
    Parameter("regex", "1: the text is a regular expression.", "integer"),
    Parameter("level", "Only errors (error), or errors and warnings (warning)."),
    SCOPE,
    Parameter("attempt", "Only this attempt.", "integer"),
    Parameter("stream", "Only stdout or stderr."),
    Parameter("since", "Only lines printed after this time (epoch seconds).", "number"),
    Parameter("until", "Only lines printed before this time.", "number"),
    Parameter("limit", "The most lines, 200 by default.", "integer"),
)
STEPS = Parameter("steps", "The most steps, 50 by default.", "integer")
STEP = Parameter("step", "Only this step, as bars; by default a map of all steps.", "integer")
URI = Parameter("uri", "The checkpoint's URI, as in the list.")
NAME = Parameter("name", "The tensor's name.")
ARCHIVED = Parameter(
    "archived",
    "`also`: archived jobs, too; `only`: those alone. By default archived jobs that have ended are left out.",
)
JOB_FILTERS = (
    Parameter("user", "Jobs of these users, separated by commas."),
    Parameter("queue", "Jobs in these queues."),
    Parameter("tag", "Jobs with one of these tags."),
    Parameter("name", "Jobs whose name contains this text."),
    Parameter("state", "Jobs in these states."),
    Parameter("framework", "Jobs with these frameworks."),
    Parameter("engine", "Jobs on these engines."),
    Parameter("text", "Jobs with all these words in name, id, user, queue, tags, labels, diagnostics or note."),
    *RANGE,
    ARCHIVED,
)
SORT = Parameter(
    "sort",
    "A field of the rows that is no list (`started`, `duration_s`, `gpu_hours`, …), `metric:NAME:last` (or `min`, "
    "`max`) or `param:NAME`; a `-` before it reverses the order.",
)
JOB_PAGE = (
    Parameter("limit", "The most jobs, 50 by default.", "integer"),
    Parameter("after", "The `next` of the previous page."),
)
JOB_COLUMNS = Parameter(
    "columns",
    "The metrics and hyperparameters that the rows hold: metric:NAME, param:NAME, separated by commas, or all. In a "
    "name , and % are percent-encoded.",
)
USAGE = (
    Parameter("by", "user (the default), queue, tag or day, by the server's clock."),
    Parameter("user", "Jobs of these users, separated by commas."),
    Parameter("queue", "Jobs in these queues."),
    Parameter("tag", "Jobs with one of these tags."),
    *RANGE,
)

ROUTES: tuple[Route, ...] = (
    Route("server", "job:server", "The server that answers.", answer="Server"),
    Route("openapi.json", "job:openapi", "The OpenAPI document.", answer="Description"),
    Route(
        "jobs",
        "jobs:jobs",
        "A page of the list of jobs (history server).",
        (*JOB_FILTERS, SORT, *JOB_PAGE, JOB_COLUMNS, SINCE),
        "Jobs",
        cached=True,
    ),
    Route(
        "jobs.csv",
        "jobs:jobs_csv",
        "The list of jobs as a file, 10,000 jobs at most (history server).",
        (
            *JOB_FILTERS,
            SORT,
            Parameter("columns", "Columns as in the rows of `jobs`, and metric:NAME:last (min, max), param:NAME."),
        ),
        "text/csv",
    ),
    Route("users", "jobs:users", "What jobs used, by user (history server).", (*USAGE, SINCE), "Users", cached=True),
    Route("users.csv", "jobs:users_csv", "What jobs used, as a file (history server).", USAGE, "text/csv"),
    Route(
        "compare",
        "jobs:compare",
        "Jobs side by side (history server).",
        (
            Parameter(
                "jobs",
                "The ids of 2 to 10 jobs, separated by commas; or of one, which is compared with its user's last run "
                "of the same name before it.",
            ),
            Parameter("equal", "1: also what is the same in all of them.", "integer"),
        ),
        "Compare",
    ),
    Route(
        "trace",
        "jobs:trace",
        "The owner of a container, process or GPU: job, user, queue, task, rank, GPUs.",
        (Parameter("of", "A container's id, host:pid, or host/gpu3."),),
        "TraceResult",
    ),
    Route("session", "job:session", "The parts of a link to this page.", (), "PageLink"),
    Route(
        "jobs/{job}",
        "job:job",
        "A job: its spec, state and progress.",
        (
            SINCE,
            Parameter("open", "visible or hidden: the page's tab. The server waits for it after the job's end."),
        ),
        "Job",
        cached=True,
    ),
    Route("jobs/{job}/row", "jobs:row", "A job as a row of the list (history server).", (), "JobRow"),
    Route("jobs/{job}/tasks", "job:tasks", "The tasks of a job.", (SINCE,), "Tasks", cached=True),
    Route(
        "jobs/{job}/timeline",
        "job:timeline",
        "The phases of the job and of each attempt.",
        (SINCE,),
        "Timeline",
        cached=True,
    ),
    Route("jobs/{job}/stacks", "job:stacks", "The stacks of the programs that were kept last.", (), "KeptStacks"),
    Route(
        "jobs/{job}/events",
        "job:events",
        "The event log of a job, without samples and reported metrics.",
        (
            Parameter("since", "Number of the first event.", "integer"),
            Parameter("limit", "The most events, 1000 by default.", "integer"),
        ),
        "Events",
    ),
    Route(
        "jobs/{job}/logs/merged",
        "merged_logs:merged",
        "The last lines of several tasks, 64 at most, in the order of time.",
        (SCOPE,),
        "MergedLines",
    ),
    Route(
        "jobs/{job}/logs/archive",
        "log_downloads:archive",
        "What all attempts of all tasks have printed, as a zip archive.",
        (SCOPE,),
        "application/zip",
    ),
    Route(
        "jobs/{job}/logs/{task}",
        "logs:logs",
        "The output of a task.",
        (
            Parameter("stream", "stdout (the default), stderr, or both in order of time."),
            Parameter("attempt", "The attempt; the latest by default.", "integer"),
            Parameter("offset", "Offset of the first byte; from the end if negative.", "integer"),
            Parameter("limit", "The most bytes, 65536 by default.", "integer"),
            Parameter("lines", "1: also the number of the first line, and when the lines were printed.", "integer"),
        ),
        "Log",
    ),
    Route(
        "jobs/{job}/logs/{task}/download",
        "logs:download",
        "The whole output of a task, as a file.",
        (
            Parameter("stream", "stdout, stderr, or both (the default)."),
            Parameter("attempt", "The attempt; the latest by default.", "integer"),
        ),
        "text/plain",
    ),
    Route(
        "jobs/{job}/search",
        "logs:search",
        "A search of the output of all tasks, in all attempts.",
        SEARCH,
        "SearchResult",
    ),
    Route(
        "jobs/{job}/search/download",
        "log_downloads:search_matches",
        "The matches of a search as a file, with tabs between time, task, attempt, stream, line and text.",
        SEARCH,
        "text/plain",
    ),
    Route(
        "jobs/{job}/series",
        "metrics:series",
        "The resource usage of tasks over time, and the metrics that programs report.",
        (
            Parameter("name", "Names of series, separated by commas; without it and `kind` only the names are listed."),
            Parameter("kind", "All names of a kind: sampled, told (reported by programs), or all."),
            Parameter("task", "These tasks, separated by commas; all by default."),
            Parameter("from", f"Epoch seconds; {_FROM_END}", "number"),
            Parameter("to", f"Epoch seconds; {_FROM_END}", "number"),
            Parameter("points", "The most points of each series, 400 by default; extremes are kept.", "integer"),
            SINCE,
        ),
        "Series",
    ),
    Route("jobs/{job}/metrics.prom", "metrics:metrics", "The present metrics for Prometheus.", answer="text/plain"),
    *(
        Route(f"jobs/{{job}}/{path}", "curves:relay", summary, parameters, answer, embeddable=embeddable)
        for path, summary, parameters, answer, embeddable in (
            ("curves/runs", "Training curves: the runs and their tags.", (SINCE,), "Runs", True),
            ("curves/scalars", "Lines.", (*RUNS, POINTS, SINCE), "Lines", True),
            ("curves/scalars.svg", "Lines as a picture.", (*RUNS, POINTS, *PICTURE), "image/svg+xml", True),
            ("curves/scalars.png", "Lines as a picture.", (*RUNS, POINTS, *PICTURE), "image/png", True),
            ("curves/histograms", "A distribution over time, in buckets.", (RUN, TAG, STEPS), "Histograms", True),
            (
                "curves/distributions",
                "A distribution over time, in percentiles.",
                (RUN, TAG, STEPS),
                "Distributions",
                True,
            ),
            *(
                (f"curves/{name}.{form}", summary, (RUN, TAG, STEPS, *more, *PICTURE), kind, True)
                for name, summary, more in (
                    ("histograms", "Histograms over time, or of one step, as a picture.", (STEP,)),
                    ("distributions", "Percentiles over time as a picture.", ()),
                )
                for form, kind in (("svg", "image/svg+xml"), ("png", "image/png"))
            ),
            ("curves/images", "A list of images.", (RUN, TAG, STEPS), "Images", True),
            ("curves/image", "One image.", (RUN, TAG, *IMAGE), "image/*", True),
            ("curves/audio", "A list of audio clips.", (RUN, TAG, STEPS), "AudioClips", True),
            ("curves/audio_clip", "One audio clip.", (RUN, TAG, *IMAGE), "audio/*", True),
            (
                "curves/pr_curves",
                "Curves of precision over recall.",
                (RUN, TAG, STEPS),
                "PrecisionRecallCurves",
                True,
            ),
            ("curves/text", "Texts.", (RUN, TAG, STEPS), "Texts", True),
            ("curves/hparams", "Runs with their hyperparameters.", (), "Hyperparameters", True),
            ("curves/embed.html", "A chart as a page for an iframe.", (*RUNS, POINTS, *EMBEDDED), "text/html", True),
            (
                "curves/embed.js",
                "A script that draws a chart in its place.",
                (*RUNS, POINTS, *EMBEDDED),
                "text/javascript",
                True,
            ),
            ("checkpoints", "The checkpoints of the job.", (), "Checkpoints", False),
            ("checkpoints/tensors", "The tensors of a checkpoint.", (URI,), "Tensors", False),
            ("checkpoints/statistics", "Statistics of one tensor.", (URI, NAME), "TensorStatistics", False),
        )
    ),
)

ACTIONS: tuple[Action, ...] = (
    Action("check", "Check whether the token may act."),
    Action("cancel", "End the job."),
    Action(
        "save",
        "Take a snapshot of outputs; the answer has pairs of an output and the number of its snapshot.",
        (Parameter("output", "The number of the output; -1 (the default) for all.", "integer"),),
        "Saving",
    ),
    Action(
        "stacks",
        "Read the present stacks of the programs; the answer has them by task.",
        (
            Parameter("task", "Only this task; by default all."),
            Parameter("native", "Include the frames of compiled code.", "boolean"),
        ),
        "Stacks",
    ),
    Action(
        "tensorboard",
        "Start the job's TensorBoard; the answer has its state, and its url when it is open.",
        (Parameter("idle_s", "Seconds without a request after which it ends, 1800 by default.", "number"),),
        "TensorBoardState",
    ),
    Action("tensorboard/stop", "End the job's TensorBoard."),
    Action(
        "annotate",
        "Change the job's note, its tags, or whether it is archived (history server). What is not given stays.",
        (
            Parameter("note", "Plain text, 2000 characters at most."),
            Parameter("tags", "All tags of the job from now on, 20 at most.", "array"),
            Parameter("archived", "Whether the job is left out of lists when it has ended.", "boolean"),
        ),
        "JobAnnotation",
        of_history=True,
    ),
)


def match(path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path below `api/v1/`, and the values in the path."""
    segments = path.split("/")
    for route in ROUTES:
        path_params = _match_segments(route.path.split("/"), segments)
        if path_params is not None:
            return route, path_params
    return None


def _match_segments(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if pattern[-1] == "{rest}" and len(segments) >= len(pattern):
        segments = [*segments[: len(pattern) - 1], "/".join(segments[len(pattern) - 1 :])]
    if len(pattern) != len(segments):
        return None
    path_params = {}
    for wanted, found in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            path_params[wanted.strip("{}")] = found
        elif wanted != found:
            return None
    return path_params


def handler(route: Route) -> Handler:
    """Import the function that answers this route."""
    module, _, name = route.handler.partition(":")
    found: Handler = getattr(importlib.import_module(f"howdah.api.handlers.{module}"), name)
    return found
