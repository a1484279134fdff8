"""Makes a job of the call of a function, follows it to its end, and returns what its tasks have returned."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from howdah.cli.i18n import _, choose, translate_stored
from howdah.cli.interrupts import Interrupts, SignalReceived
from howdah.cli.terminal import Plain
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.follow import Follower
from howdah.client.job_end import cancel_job, report_of, wait_for_end
from howdah.client.page_links import page_url_if_known
from howdah.client.submission import submit
from howdah.client.submit import PreparedJob, default_environment, is_seen, prepare
from howdah.client.unconnected_copies import trains_alone
from howdah.config.job_file import from_tree
from howdah.config.settings import Settings
from howdah.config.spec_reader import keys_of, meant_key
from howdah.config.yaml_tree import tree_of
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, Mistake, SpecError
from howdah.functions.packed_function import pack_function
from howdah.functions.results import Results, end_of_job, new_place, nodes_by_task, tasks_by_rank
from howdah.jupyter.live_table import LiveTable, in_notebook
from howdah.program.run_function import ABOUT, ALL_TASKS, MODULES
from howdah.spec import JobSpec, Outcome, State
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.hdfs.call_timeout import start_call
from howdah.wire.program_protocol import FUNCTION_RESULTS

ROLE = "worker"
DIRECTORY = "howdah-function"
"""The directory with the function, in a task's working directory."""
_OF_ROLE, _OF_RESOURCES = ("replicas", "ports", "min_replicas", "spares"), ("gpus", "vcores", "memory")
_PLACE = "the call"
_PATIENCE_S = 300.0
"""Seconds for which a ResourceManager may not answer before a running job is given up: it may restart."""


@dataclass(frozen=True)
class FunctionCall:
    """Describes the call that each task makes."""

    function: Callable[..., Any]
    """The function that is called."""
    args: Sequence[Any]
    """Its positional arguments."""
    kwargs: Mapping[str, Any]
    """Its named arguments."""
    whose: str
    """Whose results are kept: the `first` task's, or `all`."""
    join: Callable[[list[Any]], list[Any]] = list
    """Turns these results, in the order of ranks, into the value that the caller gets."""

    @property
    def name(self) -> str:
        """Return a name for the job."""
        inner = getattr(self.function, "func", self.function)
        return str(getattr(inner, "__name__", type(inner).__name__)).strip("<>_") or "function"


def run_job(call: FunctionCall, on: str, profile: str, keys: Mapping[str, Any]) -> list[Any]:
    """Run the job and return what its tasks have returned, joined; `howdah.functions.run` has the rest."""
    choose()
    flags = {"engine": on, "profile": profile}
    settings = settings_for(flags)
    engine = engine_for(settings)
    place = new_place(engine.home)
    with tempfile.TemporaryDirectory(prefix="howdah-") as temporary:
        directory = Path(temporary, DIRECTORY)
        directory.mkdir()
        pack_function(directory, call.function, call.args, call.kwargs, call.whose)
        job = make_job(directory, place, {"name": call.name, **keys}, engine, settings)
        results = Results(place, tasks_by_rank(job), settings["hadoop_conf_dir"])
        results.prepare()
        view, outcome = _run(prepare(job, Path.cwd(), flags, _tell, origins=_origins(keys, call, directory)))
    if outcome.state is not State.SUCCEEDED:
        raise results.failure(end_of_job(view.id, outcome), outcome, nodes_by_task(view))
    results = results.of_tasks(view.takes_part)
    return results.read(len(results.tasks) if call.whose == ALL_TASKS else 1, call.join)


def _origins(keys: Mapping[str, Any], call: FunctionCall, directory: Path) -> dict[str, str]:
    """Return the parts of the job that the call decides. It decides the framework, too, if several copies of the
    function are intended: the result of each is wanted, or the function in `directory`, or a module of it, does not
    train, or asks for the other tasks."""
    chosen = "framework" in keys or call.whose == ALL_TASKS
    if not chosen:
        sources = json.loads((directory / ABOUT).read_text("utf-8"))["sources"].values()
        modules = (path.read_text("utf-8", "replace") for path in (directory / MODULES).rglob("*.py"))
        chosen = not trains_alone([*sources, *modules])
    return dict.fromkeys(("roles", "framework") if chosen else ("roles",), _PLACE)


def run_program(path: Path, args: Sequence[str], on: str, profile: str, keys: Mapping[str, Any]) -> None:
    """Run a program of Python in each task of a job, to its end.

    Raises:
        JobFailed, JobCancelled: it has ended without success.
    """
    choose()
    flags = {"engine": on, "profile": profile}
    settings = settings_for(flags)
    engine = engine_for(settings)
    more = {"name": path.stem, **keys, "files": [*_listed(keys, "files"), str(path.resolve())]}
    job = read_job(more, (python_of(keys, engine, settings), path.name, *args))
    view, outcome = _run(prepare(job, Path.cwd(), flags, _tell))
    if outcome.state is not State.SUCCEEDED:
        raise end_of_job(view.id, outcome)


def python_of(keys: Mapping[str, Any], engine: Engine, settings: Settings) -> str:
    """Return the Python of the tasks: that of their environment, else the present one if the nodes see it."""
    given = keys.get("environment") or settings["environment"]
    if not given:
        return sys.executable if is_seen(sys.executable, engine, settings) else "python"
    named = given.get("python") if isinstance(given, Mapping) else default_environment(str(given)).python
    is_program = named and "/" in str(named) and os.path.isabs(named) and not os.path.isdir(named)  # noqa: PTH112, PTH117
    # The path becomes `python` in the tasks; a directory such as /usr/bin has a python3, but no python.
    return str(named) if is_program else "python"


def make_job(directory: Path, place: str, keys: Mapping[str, Any], engine: Engine, settings: Settings) -> JobSpec:
    """Return the job that calls the function in `directory` and keeps the results at the URI `place`.

    Raises:
        SpecError: what is wrong with the keys.
    """
    files = [*_listed(keys, "files"), str(directory)]
    outputs = [*_listed(keys, "outputs"), {"from": FUNCTION_RESULTS, "path": place, "keep_failed": True}]
    command = (python_of(keys, engine, settings), "-m", "howdah.program.run_function", DIRECTORY)
    return read_job({**keys, "files": files, "outputs": outputs}, command)


def _listed(keys: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the items of a key that is a list; none if the key is None, as in a job file."""
    value = keys.get(name)
    if isinstance(value, (str, os.PathLike)):
        raise SpecError.at(name, "is a text, must be a list")
    if value is not None and (not isinstance(value, Iterable) or isinstance(value, (Mapping, bytes))):
        raise SpecError.at(name, "must be a list")
    return () if value is None else tuple(value)


def read_job(keys: Mapping[str, Any], command: Sequence[str]) -> JobSpec:
    """Return the job whose `replicas` workers run `command`; `keys` are those of a worker and of a job file.

    Raises:
        SpecError: what is wrong with the keys.
    """
    rest = dict(keys)
    known = {*_OF_ROLE, *_OF_RESOURCES, *keys_of(JobSpec)} - {"roles"}
    wrong = [
        Mistake(
            name,
            "is not a key of a job file, or of its workers",
            meant if (meant := meant_key(name)) in known else nearest(name, known),
        )
        for name in rest
        if name not in known
    ]
    if wrong:
        raise SpecError(wrong)
    role: dict[str, Any] = {name: rest.pop(name) for name in _OF_ROLE if name in rest}
    role["command"] = list(command)
    role["resources"] = {name: rest.pop(name) for name in _OF_RESOURCES if name in rest}
    return from_tree(tree_of({**rest, "roles": {ROLE: role}}, _PLACE), [], _PLACE, {}, os.environ, {})[0]


def _run(prepared: PreparedJob) -> tuple[JobView, Outcome]:
    """Submit the job and show it, with the output of its first task, on standard error until it ends. An interrupt
    cancels the job, even during the submission."""
    is_interrupted, job_id = threading.Event(), ""

    def check(*_: object) -> None:
        if is_interrupted.is_set():
            raise KeyboardInterrupt

    # An exception from a signal handler may get lost in the code that just runs: the handler only notes the signal, and
    # this loop obeys it.
    with Interrupts(ends_process=False) as interrupts:
        submission = start_call(lambda: submit(prepared, _tell, check))
        try:
            job_id = interrupts.wait(submission)
            return _follow(prepared.engine, job_id, interrupts)
        except (SignalReceived, KeyboardInterrupt):
            is_interrupted.set()  # ends an upload
            job_id = interrupts.finish(submission)
            interrupts.finish(start_call(lambda: _cancel(prepared.engine, job_id)))
            raise KeyboardInterrupt from None
        except EngineUnavailable as error:
            if not job_id:
                raise
            raise EngineUnavailable(f"{error}; {_may_go_on(job_id)}") from error


def _cancel(engine: Engine, job_id: str) -> None:
    try:
        cancel_job(engine, report_of(engine, job_id), _tell)
        _tell(_("{id} is cancelled", id=job_id))
    except HowdahError as error:
        _tell(str(error))
        _tell(_may_go_on(job_id))


def _may_go_on(job_id: str) -> str:
    return _("the job may go on; `howdah status {id}` and `howdah cancel {id}` reach it", id=job_id)


def _follow(engine: Engine, job_id: str, interrupts: Interrupts) -> tuple[JobView, Outcome]:
    _tell(job_id)
    follower, page = Follower(engine, job_id, "chief", _PATIENCE_S), ""
    updates = follower.updates()
    table = LiveTable(job_id) if in_notebook() else None
    with Plain(sys.stderr) as screen:
        while (update := interrupts.wait(start_call(lambda: next(updates, None)))) is not None:
            if not page and update.report.master and (page := page_url_if_known(engine, update.report)):
                _tell(_("page: {url}", url=page))
            screen.show(update)
            if table is not None:
                table.show(update.view, lambda: page)
    if follower.view.outcome is not None:
        return follower.view, follower.view.outcome
    report = interrupts.wait(start_call(lambda: wait_for_end(engine, job_id) or follower.latest_report()))
    return follower.view, Outcome(report.state, report.diagnostics)


def _tell(sentence: str) -> None:
    print(translate_stored(sentence), file=sys.stderr, flush=True)
