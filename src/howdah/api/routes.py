"""The table of all calls of the API: the router finds the handler of a request in the table, and `openapi.json` is made
from the table.

A handler, `async (ApiRequest) -> JSON value | Response`, is named `module:function` below `howdah.api.handlers`, and
imported at its first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from howdah.api.http_server import Request
from howdah.api.sources import JobSource, Source
from howdah.logs.query import whole_number

PREFIX = "/api/v1/"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query. `kind` is a type of JSON Schema: string, integer, number; an array is of strings, given
    by repeating the parameter."""

    name: str
    summary: str
    kind: str = "string"


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
    """The name of the answer's shape in `howdah.api.schemas` or `curve_schemas`, or its content type."""
    cached: bool = False
    """True where the answer depends on the job's version alone: then it is rendered at most once a second, and `since=`
    is answered shortly."""
    embeddable: bool = False
    """True where an embed token is enough."""


@dataclass(frozen=True)
class Action:
    """A call that changes a job, by PUT or POST on `jobs/{job}/actions/<name>`. `words` are the values in its body
    beside the token, `answer` is the shape of its answer. The master's table of actions has the code."""

    name: str
    summary: str
    words: tuple[Parameter, ...] = ()
    answer: str = "Done"


@dataclass(frozen=True)
class ApiRequest:
    """A call as its handler sees it. `http` is the request itself, `path_params` are the values in its path,
    `job_or_none` is the job that the path names."""

    http: Request
    source: Source
    job_or_none: JobSource | None
    path_params: dict[str, str]
    query: dict[str, str]

    @property
    def job(self) -> JobSource:
        """The job of a call whose path names one."""
        assert self.job_or_none is not None
        return self.job_or_none

    def number(self, name: str, default: int, least: int | None = None, most: int | None = None) -> int:
        """Return the query's whole number of this name, limited to the range from `least` to `most`.

        Raises:
            InvalidRequest: the value is not a whole number.
        """
        value = whole_number(self.query, name, default)
        value = value if least is None else max(least, value)
        return value if most is None else min(most, value)


Handler = Callable[[ApiRequest], Awaitable[Any]]

SINCE = Parameter("since", "The version you have: the answer is short when nothing has changed.", "integer")
RANGE = (Parameter("from", "Epoch seconds.", "number"), Parameter("to", "Epoch seconds.", "number"))

RUN, TAG = Parameter("run", "The run's name."), Parameter("tag", "What of it.")
RUNS = (
    Parameter("run", "A run's name, or several with commas between; may be repeated. All by default.", "array"),
    Parameter("tag", "What of them; as `run`.", "array"),
)
POINTS = Parameter(
    "points", "At most so many of each line, 1000 by default; of a picture as many as it is wide.", "integer"
)
PICTURE = (
    Parameter("x", "step (also by default), time or relative."),
    Parameter("scale", "linear (also by default) or log, of the values; of histograms of the counts."),
    Parameter("title", "Instead of the tags."),
    Parameter("width", "In pixels.", "integer"),
    Parameter("height", "In pixels.", "integer"),
    Parameter("language", "en or zh."),
    Parameter("theme", "auto, light or dark."),
)
EMBEDDED = (
    Parameter("chart", "scalars (also by default), histograms or distributions, with their parameters."),
    *PICTURE,
    Parameter("refresh", "Seconds until it is drawn again, 5 by default.", "number"),
)
IMAGE = (
    Parameter("step", "Of this step; the last by default.", "integer"),
    Parameter("index", "Which of the step's images, from 0.", "integer"),
)
STEPS = Parameter("steps", "At most so many, 50 by default.", "integer")
STEP = Parameter("step", "Of this step alone, as bars; without it a map of all steps.", "integer")
URI = Parameter("uri", "The checkpoint's, as the list has it.")
NAME = Parameter("name", "The tensor's name.")

ROUTES: tuple[Route, ...] = (
    Route("server", "job:server", "Who answers here.", answer="Server"),
    Route("openapi.json", "job:openapi", "This description.", answer="Description"),
    Route(
        "jobs",
        "jobs:jobs",
        "A page of the list of jobs (history server).",
        (
            Parameter("user", "Of these users, with commas between."),
            Parameter("queue", "In these queues."),
            Parameter("name", "With this in their name."),
            Parameter("state", "In these states."),
            Parameter("framework", "With these frameworks."),
            Parameter("text", "With all these words in name, id, tags, labels or diagnostics."),
            *RANGE,
            Parameter(
                "sort", "started, finished, name, user, state, duration, gpu_hours, wasted_gpu_hours; - turns it."
            ),
            Parameter("limit", "At most so many, 50 by default.", "integer"),
            Parameter("after", "The `next` of the page before."),
            SINCE,
        ),
        "Jobs",
        cached=True,
    ),
    Route("users", "jobs:users", "GPU-hours by user (history server).", (*RANGE, SINCE), "Users", cached=True),
    Route(
        "compare",
        "jobs:compare",
        "Two jobs side by side (history server).",
        (Parameter("jobs", "Their ids, with a comma between."),),
        "Compare",
    ),
    Route(
        "trace",
        "jobs:trace",
        "Whose a container, process or GPU is: job, user, queue, task, rank, GPUs.",
        (Parameter("of", "A container's id, host:pid, or host/gpu3."),),
        "Traced",
    ),
    Route("session", "job:session", "What a link to this page is made of, to pass on.", (), "PageLink"),
    Route(
        "jobs/{job}",
        "job:job",
        "A job: what it is and how it goes.",
        (
            SINCE,
            Parameter(
                "open", "visible or hidden: a page in such a tab asks, and the server waits for it after the end."
            ),
        ),
        "Job",
        cached=True,
    ),
    Route("jobs/{job}/tasks", "job:tasks", "Its tasks.", (SINCE,), "Tasks", cached=True),
    Route("jobs/{job}/timeline", "job:timeline", "Where its time went.", (SINCE,), "Timeline", cached=True),
    Route(
        "jobs/{job}/events",
        "job:events",
        "The job's event log, without samples of usage and points of metrics.",
        (
            Parameter("since", "Number of the first event wanted.", "integer"),
            Parameter("limit", "At most so many, 1000 by default.", "integer"),
        ),
        "Events",
    ),
    Route(
        "jobs/{job}/logs/{task}",
        "logs:logs",
        "What a task printed.",
        (
            Parameter("stream", "stdout (also by default), stderr, or both as they came."),
            Parameter("attempt", "Of this attempt; the latest by default.", "integer"),
            Parameter("offset", "Where to begin; from the end when it is negative.", "integer"),
            Parameter("limit", "At most so many bytes, 65536 by default.", "integer"),
        ),
        "Log",
    ),
    Route(
        "jobs/{job}/logs/{task}/download",
        "logs:download",
        "All that a task printed, as a file.",
        (
            Parameter("stream", "stdout, stderr, or both (also by default)."),
            Parameter("attempt", "Of this attempt; the latest by default.", "integer"),
        ),
        "text/plain",
    ),
    Route(
        "jobs/{job}/search",
        "logs:search",
        "Lines in what all tasks printed, in all attempts.",
        (
            Parameter("text", "What the lines hold."),
            Parameter("regex", "1: it is a regular expression.", "integer"),
            Parameter("level", "Only errors (error), or warnings too (warning)."),
            Parameter("task", "Of these tasks, roles or ranks (worker:0-7), with commas between."),
            Parameter("attempt", "Of this attempt alone.", "integer"),
            Parameter("stream", "stdout or stderr alone."),
            Parameter("since", "Printed after this moment (epoch seconds).", "number"),
            Parameter("until", "Printed before it.", "number"),
            Parameter("limit", "At most so many, 200 by default.", "integer"),
        ),
        "Found",
    ),
    Route(
        "jobs/{job}/series",
        "metrics:series",
        "What tasks used over time, and the metrics that their programs reported.",
        (
            Parameter("name", "Of these names, with commas between; without it and `kind` only which there are."),
            Parameter("kind", "All names of a kind: sampled (usage), told (the programs' metrics), or all."),
            Parameter("task", "Of these tasks, with commas between; all by default."),
            *RANGE,
            Parameter("points", "At most so many of each, 400 by default; extremes are kept.", "integer"),
            SINCE,
        ),
        "Series",
    ),
    Route("jobs/{job}/metrics.prom", "metrics:metrics", "For Prometheus.", answer="text/plain"),
    *(
        Route(f"jobs/{{job}}/{path}", "curves:relay", summary, parameters, answer, embeddable=embeddable)
        for path, summary, parameters, answer, embeddable in (
            ("curves/runs", "Training curves: runs and what there is of each.", (SINCE,), "Runs", True),
            ("curves/scalars", "Lines.", (*RUNS, POINTS, SINCE), "Lines", True),
            ("curves/scalars.svg", "Lines as a picture.", (*RUNS, POINTS, *PICTURE), "image/svg+xml", True),
            ("curves/scalars.png", "Lines as a picture.", (*RUNS, POINTS, *PICTURE), "image/png", True),
            ("curves/histograms", "A distribution over time, in buckets.", (RUN, TAG, STEPS), "Histograms", True),
            ("curves/distributions", "The same in percentiles.", (RUN, TAG, STEPS), "Distributions", True),
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
            ("curves/text", "Texts.", (RUN, TAG, STEPS), "Texts", True),
            ("curves/hparams", "Runs by their hyperparameters.", (), "Hyperparameters", True),
            ("curves/embed.html", "A chart as a page for an iframe.", (*RUNS, POINTS, *EMBEDDED), "text/html", True),
            (
                "curves/embed.js",
                "A chart where the script stands.",
                (*RUNS, POINTS, *EMBEDDED),
                "text/javascript",
                True,
            ),
            ("checkpoints", "Checkpoints that are there.", (), "Checkpoints", False),
            ("checkpoints/tensors", "The tensors of a checkpoint.", (URI,), "Tensors", False),
            ("checkpoints/statistics", "Figures of one tensor.", (URI, NAME), "TensorStatistics", False),
        )
    ),
)

ACTIONS: tuple[Action, ...] = (
    Action("check", "Nothing: it tells whether the token may act."),
    Action("cancel", "End the job."),
    Action(
        "save",
        "Take a snapshot of outputs as they are now; answers pairs of an output and its snapshot's number.",
        (Parameter("output", "The number of the output; -1, also by default: all.", "integer"),),
        "Saving",
    ),
    Action(
        "stacks",
        "See where the programs are just now; answers the stacks by task.",
        (
            Parameter("task", "Of this task alone; by default of all."),
            Parameter("native", "With the frames of compiled code.", "boolean"),
        ),
        "Stacks",
    ),
    Action(
        "tensorboard",
        "Start the job's TensorBoard; answers its state, and its url when it is open.",
        (Parameter("idle_s", "It ends when nobody has looked for so long, 1800 s by default.", "number"),),
        "TensorBoardState",
    ),
    Action("tensorboard/stop", "End it."),
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
